/* Figures that are drawn as SVG: ladders, lanes of time, distributions, the heat map, the matrix of hosts. */

const LANE = 18; /* height of a lane */

/* A drawing that keeps its size in a narrow window, and is scrolled there, unless it was made for one. */
const scrolled = (name, svg) => make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": name}, svg);
const isNarrow = () => innerWidth < 640;

/* An empty drawing as wide as the window has room for, and the box in it: around that is room for labels. */
function chart(name, left, right, top, height, below) {
    const width = isNarrow() ? 350 : 800;
    return {box: {left, top, width: width - left - right, height},
        svg: makeSvg("svg", {viewBox: "0 0 " + width + " " + (top + height + below), class: isNarrow() ? "narrow" : "", role: "img", "aria-label": name})};
}

function chosenBy(element, frame, what) {
    const go = () => choose(frame, what);
    element.addEventListener("click", go);
    return element;
}

/* Bars in lanes, over the time shown: lanes are {name, bars: [{from, to, k, title, frame, again}]}; `kinds`: what the
 * colours mean. */
function lanes(id, title, sentence, list, table, kinds) {
    const box = make("div", {class: "lanes", role: "img", "aria-label": title + ". " + sentence});
    const line = make("div", {class: "cursor"});
    const element = figure(id, title, sentence, box, kinds ? legend(kinds) : null, table);
    const left = 8, state = {width: 0, down: null};
    const timeAt = (x) => view.from + (x - left) / Math.max(state.width - 2 * left, 1) * (view.to - view.from);
    const place = (t) => left + (t - view.from) / (view.to - view.from) * (state.width - 2 * left);
    const member = {
        element,
        start() {},
        draw() {
            if (!box.isConnected)
                return;
            state.width = box.clientWidth;
            const height = list.length * LANE * 2 + 20;
            const svg = makeSvg("svg", {width: state.width, height, viewBox: "0 0 " + state.width + " " + height, "aria-hidden": "true"});
            list.forEach((lane, i) => {
                const y = i * LANE * 2;
                const name = makeSvg("text", {x: left, y: y + 13, class: "faint"});
                name.append(lane.name);
                svg.append(name);
                lane.bars.forEach((b) => {
                    if (b.to < view.from || b.from > view.to)
                        return;
                    const from = Math.max(place(b.from), left), to = Math.min(place(b.to), state.width - left);
                    const mark = makeSvg("rect", {x: from, y: y + LANE, width: Math.max(to - from, 1.5), height: LANE - 4, class: "mark k" + b.k,
                        "fill-opacity": b.again ? 0.9 : 0.45, "stroke-width": b.again ? 1.5 : 0.5});
                    mark.append(makeSvg("title", {}, b.title));
                    svg.append(chosenBy(mark, b.frame, b.title));
                });
            });
            const steps = state.width < 480 ? 2 : 4;
            for (let i = 0; i <= steps; i++) {
                const t = view.from + (view.to - view.from) * i / steps;
                const label = makeSvg("text", {x: place(t), y: height - 4, class: "faint", "text-anchor": i === 0 ? "start" : i === steps ? "end" : "middle"});
                label.append(moment(t, view.to - view.from));
                svg.append(label);
            }
            box.replaceChildren(svg, line);
        },
        cursor(t) {
            line.style.display = t === null ? "none" : "block";
            if (t !== null)
                line.style.left = place(t) + "px";
        },
    };
    box.addEventListener("pointerdown", (e) => { state.down = e.offsetX; });
    box.addEventListener("pointermove", (e) => cursor(timeAt(e.clientX - box.getBoundingClientRect().left)));
    box.addEventListener("pointerleave", () => cursor(null));
    box.addEventListener("pointerup", (e) => {
        const from = state.down, to = e.clientX - box.getBoundingClientRect().left;
        state.down = null;
        if (from !== null && Math.abs(to - from) > 6)
            show(Math.min(timeAt(from), timeAt(to)), Math.max(timeAt(from), timeAt(to)));
    });
    box.addEventListener("dblclick", () => show(...whole));
    element.dataset.points = list.reduce((n, lane) => n + lane.bars.length, 0);
    return {element, member, used: list};
}

const TROUBLES = ["sequence NAK", "implied NAK", "RNR", "ACK timeout", "peer dead", "refused", "peer slow", "paused", "throttled", "no credits", "READ depth"];

const kindOf = (why) => TROUBLES.indexOf(why) % 7 + 1;

/* Where time was lost, a lane for each connection. */
function stallLanes() {
    const nameOf = (e) => "connection " + e.connection + ", " + e.tap;
    const list = [...new Set(data.episodes.map(nameOf))].map((name) => ({name, bars: data.episodes.filter((e) => nameOf(e) === name).map((e) => ({
        from: e.start, to: e.end, k: kindOf(e.why), frame: e.frame, title: e.why + ", " + duration(e.bill_ns) + ", connection " + e.connection}))}));
    const sentence = data.episodes.length + " of " + data.episode_count + " waits in which a connection lost time"
        + (data.episode_least_ns > 1 ? ", those of " + duration(data.episode_least_ns) + " and more" : "") + ", coloured by what they waited for.";
    return lanes("stalls", "Stalls", sentence, list, numbers("Stalls", [number("connection", (e) => e.connection), text("tap", (e) => e.tap), text("waited for", (e) => e.why),
        number("start", (e) => e.start, time), number("lost", (e) => e.bill_ns, time), frames((e) => e.frame)], data.episodes),
        TROUBLES.filter((why) => data.episodes.some((e) => e.why === why)).map((why) => ({name: why, color: kindOf(why), sign: "bar"})));
}

/* The longest request of each moment. */
function requestLanes(d) {
    const list = d.sides.filter((s) => s.requests.length).map((s) => ({name: way(s), bars: s.requests.map(([n, from, to, op, bytes, first, done, again, status]) => ({
        from, to, k: status === "SUCCESS" ? (again ? 3 : 0) : 1, again, frame: first,
        title: "request " + n + ", " + op + " " + plain(bytes) + " B, " + (done ? duration(to - from) : "no response") + (again ? ", " + again + " packets retransmitted" : "") + ", " + status}))}));
    const rows = d.sides.flatMap((s) => s.requests);
    const total = d.sides.reduce((n, s) => n + s.request_count, 0);
    return lanes("requests-" + d.connection, "Requests", rows.length + " of " + plain(total) + " work requests: the longest of each moment; with a border: retransmitted.", list,
        numbers("Requests", [number("number", (r) => r[0]), text("operation", (r) => r[3]), number("bytes", (r) => r[4]), number("start", (r) => r[1], time),
            number("latency", (r) => (r[6] ? r[2] - r[1] : null), time), number("retransmitted", (r) => r[7]), frames((r) => r[5]), text("status", (r) => r[8])], rows));
}

/* From the frame that stops a class of a port to the one that starts it again. */
function pauseLanes() {
    const open = new Map();
    for (const [t, mac, cls, quanta, frame] of data.pauses) {
        const key = mac + (cls < 0 ? " all priorities" : " priority " + cls);
        if (!open.has(key))
            open.set(key, {name: key, bars: [], since: null});
        const lane = open.get(key);
        const last = lane.bars[lane.bars.length - 1];
        if (last && last.open)
            Object.assign(last, {to: t, open: quanta > 0});
        else if (quanta)
            lane.bars.push({from: t, to: t, k: 3, frame, open: true});
    }
    const list = [...open.values()];
    list.forEach((lane) => lane.bars.forEach((b) => { b.title = "paused for " + duration(b.to - b.from) + (b.open ? " at least" : ""); }));
    return lanes("pauses", "Pause frames", plain(data.pause_count) + " pause frames; a bar lasts from the one that stops a port to the one that starts it, or to the last one seen."
        + (data.pauses.length < data.pause_count ? " " + plain(data.pauses.length) + " are listed: of those behind the first the ones that stop or start a port, and the last." : ""), list,
        numbers("Pause frames", [number("at", (r) => r[0], time), text("port", (r) => r[1]), text("priority", (r) => (r[2] < 0 ? "all" : String(r[2]))), number("quanta", (r) => r[3]),
            frames((r) => r[4])], data.pauses));
}

/* --- Distributions ------------------------------------------------------------------------------ */

const sizes = (l) => (l.bytes_to === null ? "above " + plain(l.bytes_above) : (l.bytes_above ? plain(l.bytes_above + 1) + " to " : "up to ") + plain(l.bytes_to)) + " B";
const at = (l, permille) => (l.latency.find(([p]) => p === permille) || [0, null])[1];

const LABEL_ROOM = 52; /* of a time below an axis */

/* Axes of a drawing with a logarithmic x axis from `low` to `high` ns. */
function logAxis(svg, box, low, high) {
    const x = (ns) => box.left + (Math.log10(Math.max(ns, low)) - Math.log10(low)) / Math.max(Math.log10(high) - Math.log10(low), 1e-9) * box.width;
    const first = Math.log10(low), last = Math.log10(high), step = Math.ceil(LABEL_ROOM * (last - first) / box.width);
    for (let ten = first; ten <= last; ten++) {
        svg.append(makeSvg("line", {x1: x(10 ** ten), x2: x(10 ** ten), y1: box.top, y2: box.top + box.height, class: "grid"}));
        if ((ten - first) % step)
            continue;
        const label = makeSvg("text", {x: x(10 ** ten), y: box.top + box.height + 16, "text-anchor": "middle", class: "faint"});
        label.append(duration(10 ** ten));
        svg.append(label);
    }
    return x;
}

/* The distributions of `list`, which are {n, latency: [[permille, ns], ...]}; name(l): of which requests. */
function distribution(id, title, sentence, list, name, columns) {
    const all = list.flatMap((l) => l.latency.map(([, ns]) => Math.max(ns, 1)));
    /* the decades below the shortest, unless that is 1 ns, and above the longest: no line lies on an edge */
    const low = 10 ** Math.max(Math.ceil(Math.log10(Math.min(...all))) - 1, 0), high = 10 ** Math.ceil(Math.log10(Math.max(...all) + 1));
    const {box, svg} = chart(title, 46, 30, 8, 200, 28);
    const x = logAxis(svg, box, low, high);
    const y = (permille) => box.top + box.height - permille / 1000 * box.height;
    for (const p of [0, 250, 500, 750, 1000]) {
        svg.append(makeSvg("line", {x1: box.left, x2: box.left + box.width, y1: y(p), y2: y(p), class: "grid"}));
        const label = makeSvg("text", {x: box.left - 6, y: y(p) + 4, "text-anchor": "end", class: "faint"});
        label.append(p / 10 + " %");
        svg.append(label);
    }
    const dashes = (i) => ["none", "6 3", "2 2"][Math.floor(i / 8) % 3];
    list.forEach((l, i) => {
        const path = makeSvg("path", {class: "line k" + i % 8, "stroke-dasharray": dashes(i),
            d: l.latency.map(([p, ns], k) => (k ? "L" : "M") + x(ns).toFixed(1) + " " + y(p).toFixed(1)).join("")});
        path.append(makeSvg("title", {}, name(l)));
        svg.append(path);
    });
    const rows = tableBox("Numbers: " + title, [text("operation", (l) => l.operation), ...columns, number("requests", (l) => l.n),
        ...[["median", 500], ["90 %", 900], ["99 %", 990], ["99.9 %", 999], ["longest", 1000]].map(([t, p]) => number(t, (l) => at(l, p), time))], list);
    const element = figure(id, title, sentence, scrolled(title, svg),
        legend(list.map((l, i) => ({name: name(l), color: i % 8, dashes: i < 8 ? null : dashes(i)}))), rows);
    element.dataset.points = list.length;
    return element;
}

const latencyFigure = () => distribution("latency", "Latency by operation and size",
    "Share of the requests that were complete within a time, from their first packet to the response that completes them.", data.latency,
    (l) => l.operation + ", " + sizes(l), [text("size", sizes)]);

const ackFigure = () => distribution("ack-delay", "Delay of acknowledgements", "Share of the SENDs and WRITEs whose ACK came within a time of their last packet, as seen at the tap: "
    + plain(data.ack_delay.reduce((n, l) => n + l.n, 0)) + " requests.", data.ack_delay, (l) => l.operation, []);

function heatFigure() {
    const cells = data.heat.cells;
    const low = Math.min(...cells.map((c) => c[1])), high = Math.max(...cells.map((c) => c[1])) + 1;
    const most = Math.max(...cells.map((c) => c[2]));
    const {box, svg} = chart("Latencies over time", 70, 10, 6, Math.min(Math.max((high - low) * 9, 60), 260), 28);
    const w = box.width / data.heat.columns, h = box.height / (high - low);
    const ns = (row) => 2 ** Math.floor(row / 2) * (row % 2 ? 1.5 : 1);
    for (let row = low; row <= high; row += Math.ceil(16 / h)) {
        const label = makeSvg("text", {x: box.left - 6, y: box.top + box.height - (row - low) * h + 4, "text-anchor": "end", class: "faint"});
        label.append(duration(ns(row), 3));
        svg.append(label);
    }
    for (const [column, row, n] of cells) {
        const cell = makeSvg("rect", {x: (box.left + column * w).toFixed(2), y: (box.top + box.height - (row - low + 1) * h).toFixed(2), width: w.toFixed(2), height: h.toFixed(2),
            class: "k0", "stroke-width": 0, "fill-opacity": (0.2 + 0.8 * Math.log1p(n) / Math.log1p(most)).toFixed(2)});
        cell.append(makeSvg("title", {}, n + " requests of " + duration(ns(row), 3) + " to " + duration(ns(row + 1), 3)));
        svg.append(cell);
    }
    for (const i of [0, 0.5, 1]) {
        const label = makeSvg("text", {x: box.left + i * box.width, y: box.top + box.height + 18, "text-anchor": i === 0 ? "start" : i === 1 ? "end" : "middle", class: "faint"});
        label.append(moment(whole[1] * i, whole[1]));
        svg.append(label);
    }
    const rows = [...new Set(cells.map((c) => c[1]))].sort((a, b) => b - a).map((row) => ({row, n: cells.filter((c) => c[1] === row).reduce((s, c) => s + c[2], 0)}));
    const element = figure("heat", "Latency over time", "How many requests that began at a time took how long: the stronger the colour the more, at most " + plain(most) + ".", scrolled("Latency over time", svg),
        numbers("Latency over time", [number("from", (r) => ns(r.row), (v) => duration(v, 3)), number("to", (r) => ns(r.row + 1), (v) => duration(v, 3)), number("requests", (r) => r.n)], rows));
    element.dataset.points = cells.length;
    return element;
}

/* --- Ladders ------------------------------------------------------------------------------------ */

const ROLE_COLORS = {lost: 1, instead: 3, nak: 6, retransmission: 4, answer: 2, evidence: 5};

/* What a packet is to the incident of a ladder: the one concerned was lost, or damaged, or late. */
const roleOf = (l, role) => (role !== "lost" || l.lost ? role : l.cause === "bad-icrc" ? "damaged" : "concerned");

/* A ladder as SVG: its steps are [time, frame, to the right, role, again, text, fields]. */
function ladder(l) {
    const narrow = isNarrow(), width = narrow ? 350 : 820, stamps = l.steps.map(([t, frame]) => frame + "  " + moment(t, 1e6)),
        left = Math.max(narrow ? 96 : 130, 12 + 6.8 * Math.max(...stamps.map((s) => s.length))), right = width - (narrow ? 6 : 20), top = 30, pitch = 26;
    const svg = makeSvg("svg", {viewBox: "0 0 " + width + " " + (top + l.steps.length * pitch + 10), class: narrow ? "ladder narrow" : "ladder", role: "img", "aria-label": "Ladder of incident " + l.incident});
    for (const [x, name, anchor] of [[left, l.left, "start"], [right, l.right, "end"]]) {
        svg.append(makeSvg("line", {x1: x, x2: x, y1: top - 8, y2: top + l.steps.length * pitch + 6, class: "grid", "stroke-width": 1.5}));
        const label = makeSvg("text", {x, y: 14, "text-anchor": anchor, "font-weight": "bold"});
        label.append(name);
        svg.append(label);
    }
    const span = l.steps.length ? l.steps[l.steps.length - 1][0] - l.steps[0][0] : 0;
    l.steps.forEach(([t, frame, toRight, role, again, info], i) => {
        const waited = i ? t - l.steps[i - 1][0] : 0, waits = waited > span / 8 && !narrow; /* a long wait, written where it is */
        const y = top + i * pitch + pitch - 4, lost = role === "lost" && l.lost, k = role ? ROLE_COLORS[role] : 7;
        const from = toRight ? left : right, to = lost ? (left + right) / 2 + (right - left) / 7 * (toRight ? 1 : -1) : toRight ? right : left, tip = toRight ? -7 : 7;
        const row = makeSvg("g", {class: "mark"});
        const stamp = makeSvg("text", {x: 4, y: y + 4, class: "faint"}), words = makeSvg("text", {x: (left + right) / 2, y: y - 5, "text-anchor": "middle", class: role ? "k" + k : ""});
        stamp.append(stamps[i]);
        const told = narrow && (again || lost); /* by dashes and a cross: the room is the PSN's */
        const note = told ? "" : role ? " [" + roleOf(l, role) + "]" : again ? " [retransmitted]" : "", room = (narrow ? Math.floor((right - left) / 7.1) : waits ? 74 : 84) - note.length;
        const label = narrow ? info.replace(/^(RC|UC|XRC) (RDMA )?| QP 0x[0-9a-f]+/g, "") : info;
        if (lost && !narrow && (label + note).length < Math.abs(to - from) / 7.4)
            words.setAttribute("x", (from + to) / 2); /* beside the cross */
        words.append((label.length > room ? label.slice(0, room - 2) + ".." : label) + note);
        row.append(stamp, makeSvg("line", {x1: from, x2: to, y1: y, y2: y, class: "k" + k, "stroke-width": role || again ? 2 : 1, "stroke-dasharray": again ? "6 3" : "none"}),
            makeSvg("path", {d: lost ? `M${to - 5} ${y - 5}l10 10m0-10l-10 10` : `M${to + tip} ${y - 4}L${to} ${y}L${to + tip} ${y + 4}`, class: "k" + k, fill: "none", "stroke-width": 2}), words,
            makeSvg("title", {}, info));
        if (waits) {
            const wait = makeSvg("text", {x: right - 10, y: y - 5, "text-anchor": "end", class: "faint"});
            wait.append("+" + duration(waited, 3));
            row.append(wait);
        }
        svg.append(chosenBy(row, frame, info));
    });
    const packets = l.steps.map(([t, frame, , role, again, info, fields]) => make("details", {}, make("summary", {},
        "Frame " + frame + ", " + duration(t, 9) + ": " + info + (role ? " [" + roleOf(l, role) + "]" : again ? " [retransmitted]" : "")), make("pre", {tabindex: "0"}, fields)));
    const element = figure("ladder-" + l.incident, "Ladder of incident " + l.incident + ": " + l.cause,
        l.steps.length + " packets" + (l.connection ? " of connection " + l.connection : "") + (l.left_out ? ", " + l.left_out + " more are not drawn" : "")
        + ". Frames and times stand at the left; dashed: retransmitted" + (l.lost ? "; a cross: lost." : "."), scrolled("Ladder", svg),
        make("details", {class: "packets"}, make("summary", {}, "The packets and their fields"), ...packets));
    element.dataset.points = l.steps.length;
    return element;
}
