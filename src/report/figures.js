/* Figures over time: lines and points drawn by dygraphs, lanes drawn as SVG (svg.js). All show the same time, and the
 * cursor of one is the cursor of all. */

/* Its legend sets style attributes, which the page may not have: the page has a legend of its own. */
const canDraw = typeof Dygraph !== "undefined";
if (canDraw)
    Dygraph.PLUGINS = Dygraph.PLUGINS.filter((p) => p !== Dygraph.Plugins.Legend);

const whole = [0, Math.max(data.duration_ns, 1)];
const view = {from: whole[0], to: whole[1], members: []};

/* A member: {draw(from, to), cursor(t)}; t is null without a cursor. */
function join(member) {
    view.members.push(member);
    member.draw(view.from, view.to);
}

function leave(isGone) {
    view.members = view.members.filter((m) => !isGone(m));
}

function show(from, to) {
    const least = Math.min(100, whole[1]);
    const length = Math.min(Math.max(to - from, least), whole[1]);
    view.from = Math.min(Math.max(from, whole[0]), whole[1] - length);
    view.to = view.from + length;
    view.members.forEach((m) => m.draw(view.from, view.to));
    const output = document.getElementById("range");
    if (output)
        output.textContent = moment(view.from, length) + " to " + moment(view.to, length) + " (" + duration(length) + (length < whole[1] ? " of " + duration(whole[1]) : "") + ")";
}

const cursor = (t) => view.members.forEach((m) => m.cursor(t));

/* A frame was chosen: its number, and how to see it elsewhere. */
function choose(frame, what) {
    if (!frame)
        return;
    const filter = "frame.number == " + frame;
    const files = data.files.map((f) => "'" + f.replace(/'/g, "'\\''") + "'").join(" ");
    document.getElementById("chosen").replaceChildren("Frame " + frame + (what ? ", " + what : "") + ". Display filter: ",
        make("code", {id: "chosen-filter"}, filter), "; rdmatrace: ", make("code", {}, "rdmatrace decode -V -Y '" + filter + "' " + files));
}

/* The times, values and frames of a series, whose numbers are differences. */
function points(series) {
    const sum = (list) => { let at = 0; return list.map((d) => (at += d)); };
    return series ? {n: series.n, t: sum(series.t), v: sum(series.v), f: sum(series.f)} : null;
}

const color = (k) => getComputedStyle(document.documentElement).getPropertyValue("--c" + k).trim();

/* Signs of points, so that colours are not all that tells series apart. */
const SIGNS = {
    dot: (c, x, y) => { c.arc(x, y, 2, 0, 2 * Math.PI); c.fill(); },
    cross: (c, x, y) => { c.moveTo(x - 4, y - 4); c.lineTo(x + 4, y + 4); c.moveTo(x - 4, y + 4); c.lineTo(x + 4, y - 4); c.stroke(); },
    triangle: (c, x, y) => { c.moveTo(x, y - 5); c.lineTo(x + 5, y + 4); c.lineTo(x - 5, y + 4); c.closePath(); c.fill(); },
    square: (c, x, y) => { c.rect(x - 4, y - 4, 8, 8); c.stroke(); },
    diamond: (c, x, y) => { c.moveTo(x, y - 6); c.lineTo(x + 5, y); c.lineTo(x, y + 6); c.lineTo(x - 5, y); c.closePath(); c.fill(); },
};

function signCallback(sign) {
    return (g, name, context, x, y, c) => {
        context.save();
        context.beginPath();
        context.strokeStyle = context.fillStyle = c;
        context.lineWidth = 1.8;
        SIGNS[sign](context, x, y);
        context.restore();
    };
}

/* A label of an axis of counts: none between them. */
const countLabel = (v) => (Math.abs(v - Math.round(v)) < 1e-6 ? plain(Math.round(v)) : "");

const LEGEND_SIGNS = {dot: "M5 5a2 2 0 1 0 4 0a2 2 0 1 0-4 0", cross: "M3 1l8 8M3 9l8-8", triangle: "M7 0l5 9h-10z", square: "M3 1h8v8h-8z",
    diamond: "M7 0l5 5l-5 5l-5-5z", line: "M0 5h14", bar: "M1 1h12v8h-12z", step: "M0 8h6v-6h8"};

const FILL = 0.2; /* how dense an area is */

function legend(series) {
    return make("ul", {class: "legend"}, ...series.map((s) => make("li", {},
        makeSvg("svg", {viewBox: "0 0 14 10", class: "k" + s.color, "aria-hidden": "true"},
            makeSvg("path", {d: LEGEND_SIGNS[s.sign || (s.fill ? "bar" : s.step ? "step" : "line")], "stroke-width": s.fill ? 1 : 1.6, "stroke-dasharray": s.dashes || (s.dashed ? "3 2" : "none"),
                "fill-opacity": s.fill ? FILL : s.sign && s.sign !== "square" && s.sign !== "cross" ? 1 : 0})), s.name)));
}

/* The rows of all series together, by time: [t, value or null of each]; and the frame of each point. */
function merge(series) {
    const rows = new Map();
    series.forEach((s, i) => s.points.t.forEach((t, k) => {
        /* a second point of a series at the same time gets a row of its own */
        let at = t;
        while (rows.has(at) && rows.get(at).values[i] !== null)
            at += 0.001;
        if (!rows.has(at))
            rows.set(at, {t: at, values: Array(series.length).fill(null), frames: []});
        rows.get(at).values[i] = s.points.v[k];
        rows.get(at).frames[i] = s.points.f[k];
    }));
    return [...rows.values()].sort((a, b) => a.t - b.t);
}

/* Shades the times of the incidents of a connection. */
function drawWindows({connection, tap}) {
    return (context, area, g) => {
        context.save();
        context.fillStyle = color(1);
        context.globalAlpha = 0.1;
        for (const w of data.windows)
            if (connection && w.connection === connection && w.tap === tap) {
                const from = g.toDomXCoord(w.from), to = g.toDomXCoord(w.to);
                context.fillRect(from, area.y, Math.max(to - from, 1), area.h);
            }
        context.restore();
    };
}

/* Draw series {name, points, color, sign or line or step or fill} into a figure; `options`: value(v), ylabel, connection, log. */
function plot(id, title, sentence, series, options) {
    const used = series.filter((s) => s.points && s.points.t.length);
    const canvas = make("div", {class: "plot", role: "img", "aria-label": title + ". " + sentence});
    const line = make("div", {class: "cursor"});
    const readout = make("p", {class: "readout"});
    const rows = merge(used);
    const value = options.value || plain;
    const total = used.reduce((sum, s) => sum + s.points.n, 0), drawn = used.reduce((sum, s) => sum + s.points.t.length, 0);
    const thinned = total > drawn ? " " + plain(drawn) + " of " + plain(total) + " points are drawn: the first, lowest, highest and last of each moment." : "";
    const summary = numbers(title, [text("series", (r) => r.name), number("points", (r) => r.points.n), number("drawn", (r) => r.points.t.length),
        number("lowest", (r) => r.points.v.reduce((a, b) => Math.min(a, b)), value), number("highest", (r) => r.points.v.reduce((a, b) => Math.max(a, b)), value),
        number("first at", (r) => r.points.t[0], time), number("last at", (r) => r.points.t[r.points.t.length - 1], time)], used);
    const element = figure(id, title, sentence + thinned, canvas, readout, legend(used), summary);
    let graph = null;

    element.dataset.points = drawn;
    used.forEach((s) => { element.dataset[s.key || "series"] = s.points.t.length; });
    const select = (t) => {
        const at = rows.length && rows.reduce((best, r) => (Math.abs(r.t - t) < Math.abs(best.t - t) ? r : best));
        if (at)
            readout.textContent = duration(at.t, 9) + ": " + used.map((s, i) => at.values[i] === null ? null :
                s.name + " " + value(at.values[i]) + (at.frames[i] ? " (frame " + at.frames[i] + ")" : "")).filter(Boolean).join(", ");
    };
    const member = {
        element,
        start() {
            if (!canDraw) {
                canvas.replaceChildren("This figure is drawn by dygraphs, which was not there when rdmatrace was built. Its numbers are below.");
                return;
            }
            graph = new Dygraph(canvas, rows.map((r) => [r.t, ...r.values]), {
                labels: ["t", ...used.map((s) => s.name)], legend: "never", connectSeparatedPoints: true, animatedZooms: false,
                dateWindow: [view.from, view.to], colors: used.map((s) => color(s.color)), ylabel: options.ylabel,
                gridLineColor: getComputedStyle(document.documentElement).getPropertyValue("--line").trim(), axisLineColor: color(7),
                includeZero: !options.free, highlightCircleSize: 4, xRangePad: 4, yRangePad: 8,
                underlayCallback: drawWindows(options), fillAlpha: FILL,
                series: Object.fromEntries(used.map((s) => [s.name, {stepPlot: Boolean(s.step), strokeWidth: s.sign ? 0 : s.fill ? 1 : 1.6, fillGraph: Boolean(s.fill), strokePattern: s.dashed ? [6, 3] : null,
                    drawPoints: Boolean(s.sign), drawPointCallback: signCallback(s.sign || "dot"), pointSize: 4}])),
                axes: {x: {axisLabelFormatter: (t, g, o, graphOf) => moment(t, graphOf.xAxisRange()[1] - graphOf.xAxisRange()[0]), pixelsPerLabel: isNarrow() ? 66 : 90, axisLabelWidth: 86},
                    y: {axisLabelFormatter: (v) => (options.value || countLabel)(v), axisLabelWidth: 86}},
                zoomCallback: (from, to) => show(from, to),
                highlightCallback: (event, t) => { cursor(t); select(t); },
                unhighlightCallback: () => { cursor(null); readout.textContent = ""; },
                pointClickCallback: (event, p) => { choose(frameOf(p), p.name); },
                clickCallback: (event, t, near) => { if (near.length) choose(frameOf(near[0]), near[0].name); },
            });
            canvas.append(line);
            member.graph = graph;
        },
        draw(from, to) {
            if (graph && canvas.isConnected)
                graph.updateOptions({dateWindow: [from, to]});
        },
        cursor(t) {
            line.style.display = t === null || !graph ? "none" : "block";
            if (t !== null && graph)
                line.style.left = graph.toDomXCoord(t) + "px";
        },
    };
    const frameOf = (p) => {
        const row = rows.find((r) => r.t === p.xval), i = used.findIndex((s) => s.name === p.name);
        return row && row.frames[i];
    };
    return {element, member, used};
}

/* --- The figures of a connection ---------------------------------------------------------------- */

const series = (side, key, name, k, how) => ({key, name, color: k, points: points(side.series[key]), ...how});

/* Counts of each interval as a series; `scale` makes a rate of them. */
function rate(side, key, name, k, scale) {
    const counts = side.rates[key];
    if (!counts)
        return {name, color: k, points: null};
    const t = counts.map((v, i) => i * data.interval_ns);
    return {key, name, color: k, step: true, points: {n: counts.length, t, v: counts.map((v) => v * scale), f: counts.map(() => 0)}};
}

const bits = () => 8e9 / data.interval_ns;
const way = (side) => side.source + " > " + side.destination;
const count = (s) => (s ? plain(s.n) : "0");
const counted = (s, what) => count(s) + " " + what + (s && s.n === 1 ? "" : "s");

/* Each row: for which direction, its title, its sentence, its series, its options. */
const SIDE_FIGURES = [
    {
        id: "psn", title: "PSN over time", wants: (s) => s.series.request,
        sentence: (s) => counted(s.series.request, "request packet") + ", " + count(s.series.retransmitted) + " retransmitted; "
            + counted(s.series.sequence_nak, "sequence NAK") + ", " + counted(s.series.rnr_nak, "RNR NAK") + ", " + counted(s.series.nak, "other NAK") + ".",
        series: (s) => [series(s, "request", "request", 0, {sign: "dot"}), series(s, "response", "READ response or atomic acknowledge", 4, {sign: "dot"}),
            series(s, "acknowledged", "acknowledged before", 2, {step: true}), series(s, "retransmitted", "retransmitted", 1, {sign: "cross"}),
            series(s, "sequence_nak", "sequence NAK", 3, {sign: "triangle"}), series(s, "rnr_nak", "RNR NAK", 6, {sign: "square"}),
            series(s, "nak", "other NAK", 5, {sign: "diamond"})],
        options: {free: true, ylabel: "PSN"},
    },
    {
        id: "outstanding", title: "Outstanding", wants: (s) => s.series.psns_outstanding,
        sentence: (s, row) => "PSNs sent and not acknowledged" + (row ? ", at most " + plain(row.in_flight_psns) : "")
            + (s.series.reads_outstanding ? "; READs and atomics without response"
                + (row && row.depth_negotiated !== null ? " (agreed depth " + row.depth_negotiated + ")" : "") : "") + (s.series.credits ? "; credits granted." : "."),
        series: (s, row) => [series(s, "psns_outstanding", "PSNs outstanding", 0, {step: true}), series(s, "reads_outstanding", "READs and atomics outstanding", 4, {step: true}),
            series(s, "credits", "credits", 2, {step: true}),
            {key: "agreed", name: "agreed depth", color: 7, points: row && s.series.reads_outstanding && row.depth_negotiated !== null ? constant(row.depth_negotiated) : null}],
        options: {ylabel: "outstanding"},
    },
];

/* The rate of the link, as a line; no points if it is not known. */
const linkLine = (k) => ({key: "link", name: "link, " + amount(data.link_bps || 0, "bit/s"), color: k, dashed: true, points: data.link_bps ? constant(data.link_bps) : null});
const constant = (v) => ({n: 2, t: [whole[0], whole[1]], v: [v, v], f: [0, 0]});

const CONNECTION_FIGURES = [
    {
        id: "rates", title: "Rates",
        sentence: () => "InfiniBand payload, and bytes on the wire with all headers, in each " + duration(data.interval_ns) + ".",
        series: (d) => d.sides.flatMap((s, i) => [rate(s, "payload_bytes", way(s) + " payload", i * 2, bits()), rate(s, "bytes", way(s) + " on the wire", i * 2 + 1, bits())]),
        options: {value: (v) => amount(v, "bit/s"), ylabel: "rate"},
    },
    {
        id: "congestion", title: "Congestion: ECN marks, CNPs and rate",
        sentence: (d) => d.sides.map((s) => way(s) + ": " + plain(sumOf(s.rates.np_ecn_marked_roce_packets)) + " packets marked CE, "
            + plain(sumOf(s.rates.np_cnp_sent)) + " CNPs").join("; ") + ". Rate in units of the highest count.",
        series: (d) => congestion(d),
        wants: (d) => d.sides.some((s) => s.rates.np_ecn_marked_roce_packets || s.rates.np_cnp_sent),
        options: {ylabel: "packets in an interval"},
    },
    {
        id: "retransmissions", title: "Retransmitted packets over time", wants: (d) => d.sides.some((s) => s.rates.retransmitted_packets),
        sentence: () => "Retransmitted request packets in each " + duration(data.interval_ns) + ".",
        series: (d) => d.sides.map((s, i) => rate(s, "retransmitted_packets", way(s), i + 1, 1)), options: {ylabel: "packets"},
    },
];

const sumOf = (list) => (list || []).reduce((a, b) => a + b, 0);

/* The rate is an area behind the counts: where every packet is marked, its line and that of the marks are one. */
function congestion(d) {
    const list = d.sides.flatMap((s, i) => [rate(s, "np_ecn_marked_roce_packets", way(s) + " CE", i ? 5 : 3, 1), rate(s, "np_cnp_sent", way(s) + " CNP", i ? 6 : 1, 1)]);
    const highest = Math.max(1, ...list.filter((s) => s.points).flatMap((s) => s.points.v));
    return d.sides.map((s, i) => {
        const most = Math.max(1, ...(s.rates.payload_bytes || [0]));
        return {...rate(s, "payload_bytes", way(s) + " payload rate (of " + amount(most * bits(), "bit/s") + ")", i * 2, highest / most), fill: true};
    }).concat(list);
}

/* The row of flows about a direction. */
const rowOf = (d, s) => data.flows.flows.find((r) => r.connection === d.connection && r.tap === d.tap && r.source === s.source && r.destination_qpn === s.destination_qpn);

/* All figures of a connection, and the members that keep them together. */
function connectionFigures(d) {
    const made = [];
    for (const s of d.sides)
        for (const f of SIDE_FIGURES)
            if (f.wants(s)) {
                const row = rowOf(d, s);
                made.push(plot(f.id + "-" + d.connection + "-" + d.sides.indexOf(s), f.title + ": " + way(s), f.sentence(s, row), f.series(s, row),
                    {...f.options, connection: d.connection, tap: d.tap}));
            }
    for (const f of CONNECTION_FIGURES)
        if (!f.wants || f.wants(d))
            made.push(plot(f.id + "-" + d.connection, f.title, f.sentence(d), f.series(d), {...f.options, connection: d.connection, tap: d.tap}));
    return made.filter((m) => m.used.length);
}
