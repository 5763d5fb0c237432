/* The report: its sections, in the order in which a reader asks. */

const explain = data.explain, incidents = explain.incidents;

document.title = "rdmatrace report: " + data.files.map((f) => f.replace(/.*\//, "")).join(", ");
document.getElementById("about").textContent = data.files.join(", ") + ": " + plain(explain.packets) + " packets, " + plain(explain.rdma_packets) + " of RDMA, "
    + duration(data.duration_ns) + ".";

/* --- Verdict, account, incidents ------------------------------------------------------------------ */

const STATE_COLORS = {transfer: 2, response: 0, idle: 7, not_known: 7, cm: 5};
const STATE_OPACITY = {idle: 0.25};
/* The others, in the order in which they are seen: one has the same colour in all bars; from the fifth on a paler one. */
[...new Set(explain.account.flatMap((a) => Object.keys(a.states)))].filter((s) => !(s in STATE_COLORS)).forEach((s, i) => { STATE_COLORS[s] = [1, 3, 6, 4][i % 4]; STATE_OPACITY[s] = i < 4 ? 0.85 : 0.45; });

/* The states of an account as one bar, and as words. */
function stateBar(states) {
    const all = Object.values(states).reduce((a, b) => a + b, 0) || 1;
    const svg = makeSvg("svg", {class: "bar", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true"});
    let x = 0;
    Object.entries(states).forEach(([name, ns]) => {
        const width = ns / all * 1000;
        const part = makeSvg("rect", {x, y: 0, width, height: 10, "stroke-width": 0, class: "k" + STATE_COLORS[name], "fill-opacity": STATE_OPACITY[name] ?? 0.85});
        part.append(makeSvg("title", {}, name + " " + duration(ns)));
        svg.append(part);
        x += width;
    });
    const words = Object.entries(states).map(([name, ns], i) => [i ? ", " : "",
        make("span", {class: "state"}, make("span", {class: "swatch k" + STATE_COLORS[name] + ((STATE_OPACITY[name] ?? 1) < 0.5 ? " pale" : "")}), name + " " + duration(ns))]);
    return make("div", {}, svg, ...words.flat());
}

function goTo(incident) {
    const w = data.windows.find((x) => x.incident === incident.number);
    if (!w)
        return;
    const drawn = data.drawn.findIndex((d) => d.connection === w.connection && d.tap === w.tap);
    if (drawn >= 0)
        pick(drawn);
    show(w.from - (w.to - w.from) / 2, w.to + (w.to - w.from) / 2);
    document.getElementById("connection").scrollIntoView();
}

function incidentBox(i) {
    const l = data.ladders.find((x) => x.incident === i.number);
    const frames = i.frame_list.map((f, k) => [k ? ", " : "", make("button", {type: "button", onclick: () => choose(f, i.cause)}, String(f))]).flat();
    return make("article", {class: "incident " + i.certainty, id: "incident-" + i.number, "data-incident": i.number},
        make("h3", {}, i.number + ". " + i.cause + (whereLost(i) ? " " + whereLost(i) : "") + (i.connection ? ", connection " + i.connection : "") + (i.certainty === "certain" ? "" : " (" + i.certainty + ")")),
        make("p", {}, i.text),
        make("p", {class: "facts"}, "Cost: " + duration(i.bill_ns) + (i.retransmitted_packets ? ", " + plain(i.retransmitted_packets) + " packets retransmitted" : "") + (i.setting ? ". Setting: " + i.setting : "") + "."),
        i.next ? make("p", {class: "facts"}, "Look at: " + i.next + ".") : null,
        make("p", {}, frames.length ? "Frames: " : "", ...frames, " ", data.windows.some((w) => w.incident === i.number) ? make("button", {type: "button", class: "act", onclick: () => goTo(i)}, "Show this time in the figures") : null),
        l && l.steps.length ? ladder(l) : null);
}

const INCIDENTS_OPEN = 16; /* the others are in the table only */

section("verdict", "Verdict", make("p", {class: "verdict"}, data.verdict),
    explain.remarks ? make("p", {}, explain.remarks) : null,
    make("p", {}, "Assumptions: " + data.check.assumptions + "."));

section("account", "Where the time went",
    !data.causes.length ? make("p", {}, "No connection lost time.") : tableBox("Time lost by cause", [text("cause", (c) => c.cause), text("where", (c) => c.where), number("incidents", (c) => c.count), number("lost", (c) => c.bill_ns, time),
        text("meaning", (c) => c.meaning)], data.causes.sort((a, b) => b.bill_ns - a.bill_ns)),
    tableBox("Account of each direction of requests" + (data.account_count > explain.account.length ? ", the first " + explain.account.length + " of " + plain(data.account_count) : ""),
        [number("connection", (a) => a.connection), text("tap", (a) => a.tap), text("requester", (a) => a.requester), text("responder", (a) => a.responder),
            text("time in each state", (a) => Object.entries(a.states).map(([n, v]) => n + " " + v).join(" "), (v, a) => stateBar(a.states))], explain.account));

/* Two runs beside each other: what all of their flows, accounts and incidents come to. */
function baselineTable(other) {
    const sums = (d) => ({...d.totals, ...Object.fromEntries(Object.entries(d.states).map(([k, v]) => ["time: " + k, v])),
        ...Object.fromEntries(d.causes.map((c) => ["lost to " + c.cause + (c.where ? " " + c.where : ""), c.bill_ns])), incidents: d.explain.incident_count,
        "rules failed": d.check.summary.fail, "time: of the capture": d.duration_ns});
    const mine = sums(data), its = sums(other);
    const rows = [...new Set([...Object.keys(mine), ...Object.keys(its)])].map((what) => ({what, mine: mine[what] ?? 0, its: its[what] ?? 0, time: /^(time|lost)/.test(what)}));
    const shown = (v, r) => (r.time ? duration(v) : plain(v));
    return tableBox("Sums of all connections: this capture and the baseline", [text("what", (r) => r.what), number("here", (r) => r.mine, shown), number("baseline", (r) => r.its, shown),
        number("difference", (r) => r.mine - r.its, (v, r) => (v > 0 ? "+" : "") + shown(v, r))], rows.filter((r) => r.mine || r.its));
}

if (data.baseline)
    section("baseline", "Beside the baseline", make("p", {}, "Here: " + data.verdict), make("p", {}, data.baseline.files.join(", ") + ": " + data.baseline.verdict), baselineTable(data.baseline));

section("incidents", "Incidents",
    make("p", {}, !explain.incident_count ? "There is none." : plain(explain.incident_count) + (explain.incident_count === 1 ? " incident" : " incidents")
        + (explain.incident_count > incidents.length ? ", the worst " + incidents.length + " of which are in this report" : "") + ", worst first."),
    incidents.length > 3 ? tableBox("Incidents", [number("number", (i) => i.number, (v) => make("a", {href: v <= INCIDENTS_OPEN ? "#incident-" + v : null}, String(v))), text("cause", (i) => i.cause), text("where", whereLost),
        number("connection", (i) => i.connection || null), number("lost", (i) => i.bill_ns, time), text("certainty", (i) => i.certainty), text("what", (i) => i.text)], incidents) : null,
    ...incidents.slice(0, INCIDENTS_OPEN).map(incidentBox));

/* --- One connection ------------------------------------------------------------------------------- */

const members = []; /* of the connection shown */

function start(made) {
    for (const m of made) {
        m.member.start();
        join(m.member);
    }
}

function pick(i) {
    const box = document.getElementById("connection-figures");
    leave((m) => members.includes(m));
    members.forEach((m) => m.graph && m.graph.destroy());
    members.length = 0;
    document.getElementById("pick").value = String(i);
    const d = data.drawn[i], made = connectionFigures(d);
    if (d.sides.some((s) => s.requests.length))
        made.push(requestLanes(d));
    box.replaceChildren(...made.map((m) => m.element));
    members.push(...made.map((m) => m.member));
    start(made);
}

function connectionName(d) {
    return "connection " + d.connection + (d.sides.length ? ": " + way(d.sides[0]) : "") + ", " + d.tap;
}

if (data.drawn.length) {
    const conns = new Set(data.flows.flows.filter((f) => f.connection).map((f) => f.connection + f.tap)).size;
    section("connection", "Connections over time",
        make("p", {}, make("label", {for: "pick"}, "Shown: "), make("select", {id: "pick", onchange: (e) => pick(Number(e.target.value))},
            ...data.drawn.map((d, i) => make("option", {value: i}, connectionName(d)))), " " + data.drawn.length + " of " + Math.max(conns, data.drawn.length)
            + ": those with the worst incidents, then those with most bytes. Drag to zoom, double click for all, click a point for its frame; incidents are shaded."),
        make("div", {id: "connection-figures"}));
    pick(0);
}

/* --- The whole capture ---------------------------------------------------------------------------- */

const overall = [];
if (data.episodes.length)
    overall.push(stallLanes());
if (data.pauses.length)
    overall.push(pauseLanes());
if (data.incast && data.incast.senders.length > 1)
    overall.push(plot("incast", "Several hosts send to " + data.incast.receiver, data.incast.senders.length + " hosts send to one: bytes on the wire of each, in each " + duration(data.interval_ns) + ", and their sum.",
        [{key: "sum", name: "all together", color: 7, step: true, points: sumOfRates(data.incast.senders.map((s) => s.rates.bytes || []))}, ...data.incast.senders.map((s, i) => ({...rate(s, "bytes", s.source, i % 7, bits()), dashed: i % 14 >= 7, key: "sender" + i})), linkLine(1)],
        {value: (v) => amount(v, "bit/s"), ylabel: "rate"}));
if (data.by_host && data.by_host.shares.length)
    overall.push(sharesFigure("by-host", "Goodput of hosts", data.by_host, (s) => s.source, "Payload that each host sent"));
if (data.by_dscp && data.by_dscp.shares.length)
    overall.push(sharesFigure("by-dscp", "Goodput of classes", data.by_dscp, (s) => "DSCP " + s.dscp, "Payload of each DSCP, of both directions together,"));
for (const [i, c] of data.clocks.entries())
    if (c.points.length)
        overall.push(plot("clock-" + i, "Clock of " + c.other + " against " + c.tap, "How much it is ahead; the true offset is between the two other lines.",
            [[1, 0, "offset"], [2, 3, "at least"], [3, 3, "at most"]].map(([k, colour, name]) => ({key: "clock" + k, name, color: colour, points: {n: c.points.length, t: c.points.map((p) => p[0]),
                v: c.points.map((p) => p[1] + (k === 2 ? -p[2] : k === 3 ? p[2] : 0)), f: c.points.map(() => 0)}})), {value: (v) => duration(v), free: true, ylabel: "offset"}));

/* What each host sent, or each class of DSCP has: its payload, and of few of them what is on the wire. */
function sharesFigure(id, title, of, name, how) {
    const list = of.shares, several = new Set(list.map((s) => s.tap)).size > 1, nameOf = (s) => name(s) + (several ? ", " + s.tap : "");
    const told = list.map((s) => [s, sumOf(s.goodput_bytes)]).filter(([, sum]) => sum).sort((a, b) => b[1] - a[1]);
    const sentence = how + " in each " + duration(data.interval_ns) + ", without request packets that were sent again"
        + (told.length ? ": " + told.slice(0, 4).map(([s, sum]) => nameOf(s) + " " + amount(sum, "B")).join("; ") + (told.length > 4 ? "; and " + (told.length - 4) + " more" : "") : "")
        + (of.bytes_left_out ? "; others are left out, with " + amount(of.bytes_left_out, "B") + " on the wire" : "")
        + (data.link_bps ? ". The rate of the link is " + amount(data.link_bps, "bit/s") + " in each direction." : ". The rate of the link is not known: --link-rate.");
    const line = (s, i, key, what) => ({...rate({rates: s}, key, nameOf(s) + what, i % 7, bits()), dashed: i % 14 >= 7 || Boolean(what), key: (what ? "wire" : "share") + i});
    const lines = list.flatMap((s, i) => [sumOf(s.goodput_bytes) ? line(s, i, "goodput_bytes", "") : null, list.length <= 4 ? line(s, i, "bytes", ", on the wire") : null]);
    return plot(id, title, sentence, [...lines.filter(Boolean), linkLine(7)], {value: (v) => amount(v, "bit/s"), ylabel: "goodput"});
}

/* The sum of counts of intervals, as a rate. */
function sumOfRates(lists) {
    const n = Math.max(...lists.map((l) => l.length));
    const v = Array.from({length: n}, (x, i) => lists.reduce((sum, l) => sum + (l[i] || 0), 0) * bits());
    return {n, t: v.map((x, i) => i * data.interval_ns), v, f: v.map(() => 0)};
}

if (overall.length) {
    section("capture", "The whole capture", ...overall.map((m) => m.element));
    start(overall);
}
if (data.latency.length || data.ack_delay.length)
    section("latencies", "Latencies", data.latency.length ? latencyFigure() : null, data.ack_delay.length ? ackFigure() : null, data.heat.cells.length ? heatFigure() : null);

/* --- Tables --------------------------------------------------------------------------------------- */

const rate_of = (v) => (v === null ? "-" : amount(v, "bit/s"));
const ends = (r) => r.source + (r.source_qpn === null ? "" : " 0x" + r.source_qpn.toString(16)) + " > " + r.destination + " 0x" + r.destination_qpn.toString(16);

/* What the cells of the matrix may show of a pair of hosts. */
const PAIR_MEASURES = [["bytes", (h) => h.bytes, (v) => amount(v, "B")], ["packets retransmitted", (h) => h.retransmitted_packets, plain], ["packets marked CE", (h) => h.np_ecn_marked_roce_packets, plain],
    ["time lost", (h) => h.lost_ns, time], ["latency 99 %, worst", (h) => h.message_latency_p99_ns, time]];

/* A pair of hosts was chosen: its flows, its connections in the figures, and a filter for its packets. */
function choosePair(h) {
    const rows = data.flows.flows.filter((r) => r.tap === h.tap && r.source === h.source && r.destination === h.destination);
    const conns = [...new Set(rows.map((r) => r.connection).filter(Boolean))], figures = data.drawn.map((d, i) => ({d, i})).filter(({d}) => d.tap === h.tap && conns.includes(d.connection));
    const show = ({d, i}) => make("button", {type: "button", class: "act", onclick: () => { pick(i); document.getElementById("connection").scrollIntoView(); }}, "Connection " + d.connection + " over time");
    document.getElementById("pair").replaceChildren(make("h3", {}, h.source + " > " + h.destination + ", " + h.tap), ...figures.map(show),
        make("p", {}, conns.length ? "Display filter: " : "", conns.length ? make("code", {id: "pair-filter"}, "rdma.conn in {" + conns.join(", ") + "}") : null),
        tableBox("Its flows", [number("connection", (r) => r.connection || null), text("type", (r) => r.service), text("source > destination", ends), number("bytes", (r) => r.bytes), number("messages", (r) => r.messages),
            number("goodput", (r) => r.goodput_bps, rate_of), number("time lost", (r) => r.lost_ns, time), number("retransmitted", (r) => r.retransmitted_packets)], rows));
}

const MATRIX_HOSTS = 32; /* of each side, those with most bytes */

/* Who sends to whom at one tap: the stronger the colour of a cell, the more. */
function hostMatrix(tap, [what, value, shown]) {
    const pairs = data.hosts.filter((h) => h.tap === tap), most = Math.max(1, ...pairs.map(value));
    const side = (end) => [...new Set([...pairs].sort((a, b) => b.bytes - a.bytes).map((h) => h[end]))].slice(0, MATRIX_HOSTS);
    const to = side("destination");
    const cellOf = (source, destination) => {
        const h = pairs.find((x) => x.source === source && x.destination === destination);
        return h ? make("td", {class: "heat" + Math.ceil(4 * value(h) / most)}, make("button", {type: "button", title: source + " > " + destination + ": " + what + " " + shown(value(h)), onclick: () => choosePair(h)}, shown(value(h)))) : make("td", {});
    };
    return make("table", {class: "matrix"}, make("caption", {}, "From the host of a row to that of a column: " + what + ", " + tap), make("thead", {}, make("tr", {}, make("td", {}), ...to.map((d) => make("th", {scope: "col"}, d)))),
        make("tbody", {}, ...side("source").map((s) => make("tr", {}, make("th", {scope: "row"}, s), ...to.map((d) => cellOf(s, d))))));
}

function matrixFigure() {
    const box = make("div", {class: "grid-box", tabindex: "0", role: "region", "aria-label": "Matrix of hosts"}), taps = [...new Set(data.hosts.map((h) => h.tap))];
    const draw = (i) => box.replaceChildren(...taps.map((tap) => hostMatrix(tap, PAIR_MEASURES[i])));
    draw(0);
    return [make("p", {}, make("label", {for: "measure"}, "Shown: "), make("select", {id: "measure", onchange: (e) => draw(Number(e.target.value))}, ...PAIR_MEASURES.map(([name], i) => make("option", {value: i}, name))),
        " A click on a cell lists the flows of the two hosts."), box, make("div", {id: "pair", role: "status"})];
}

if (data.hosts.length)
    section("hosts", "Host by host", ...matrixFigure(), tableBox("What hosts sent to hosts" + (data.host_bytes_left_out ? ", without " + amount(data.host_bytes_left_out, "B") + " between others" : ""),
    [text("tap", (h) => h.tap), text("source", (h) => h.source), text("destination", (h) => h.destination), number("packets", (h) => h.packets), number("bytes", (h) => h.bytes),
        number("retransmitted", (h) => h.retransmitted_packets), number("marked CE", (h) => h.np_ecn_marked_roce_packets), number("time lost", (h) => h.lost_ns, time),
        number("latency 99 %, worst", (h) => h.message_latency_p99_ns || null, time)], data.hosts));

if (data.commands && data.commands.length)
    section("commands", "Commands", tableBox("Commands of upper protocols" + (data.command_count > data.commands.length ? ", the " + data.commands.length + " of " + plain(data.command_count) + " that took longest" : ""),
    [number("number", (c) => c.number), number("connection", (c) => c.connection), text("protocol", (c) => c.protocol), text("command", (c) => c.command), text("status", (c) => c.status),
        number("bytes", (c) => c.bytes_to_client + c.bytes_from_client), number("latency", (c) => c.latency_ns, time), number("to data", (c) => c.before_data_ns, time), number("data", (c) => c.data_ns, time),
        number("to response", (c) => c.response_ns, time), number("retransmitted", (c) => c.retransmitted_packets),
        frames((c) => c.command_frame)], data.commands));

if (data.flows.flows.length)
    section("flows", "Flows", tableBox("What flows measures" + (data.flow_count > data.flows.flows.length ? ", the " + data.flows.flows.length + " of " + plain(data.flow_count) + " with most bytes" : ""),
    [number("connection", (r) => r.connection || null), text("type", (r) => r.service), text("source > destination", ends), text("tap", (r) => r.tap), number("packets", (r) => r.packets), number("bytes", (r) => r.bytes),
        number("messages", (r) => r.messages), number("goodput", (r) => r.goodput_bps, rate_of), number("time lost", (r) => r.lost_ns, time), number("retransmitted", (r) => r.retransmitted_packets),
        number("sequence NAKs", (r) => r.packet_seq_err), number("RNR NAKs", (r) => r.rnr_nak_retry_err), number("ACK timeouts", (r) => r.local_ack_timeout_err), number("out of order", (r) => r.out_of_order),
        number("missing PSNs", (r) => r.missing_psns), number("latency median", (r) => r.message_latency_median_ns, time), number("99 %", (r) => r.message_latency_p99_ns, time),
        number("longest", (r) => r.message_latency_max_ns, time)], data.flows.flows));

const unreliable = data.flows.flows.filter((r) => r.service === "UC" || r.service === "UD");
if (unreliable.length)
    section("unreliable", "Unreliable services", make("p", {}, "UC and UD are not acknowledged: what is missing is known by PSNs that were skipped only."),
        tableBox("UC and UD", [text("type", (r) => r.service), text("source > destination", ends), number("packets", (r) => r.packets), number("messages", (r) => r.messages),
            number("missing PSNs", (r) => r.missing_psns), number("out of order", (r) => r.out_of_order), number("duplicates", (r) => r.duplicates)], unreliable));

const s = data.check.summary;
if (s)
    section("check", "Rules", make("p", {}, `${s.rules} rules were judged: ${s.pass} passed, ${s.inconclusive} inconclusive, ${s.warnings} warnings, ${s.fail} failed.`
    + (data.finding_count > data.check.findings.length ? ` ${data.check.findings.length} of ${plain(data.finding_count)} findings are listed.` : "")),
    tableBox("Findings of check", [text("rule", (f) => f.rule), text("severity", (f) => f.severity), text("verdict", (f) => f.verdict || "note"), number("connection", (f) => f.connection || null),
        text("tap", (f) => f.tap), frames((f) => f.frames[0] ?? null), text("what", (f) => f.headline + (f.text ? ". " + f.text : ""))], data.check.findings));

/* --- The time shown ------------------------------------------------------------------------------- */

const step = (from, to) => () => show(view.from + (view.to - view.from) * from, view.to + (view.to - view.from) * to);
for (const [name, act] of [["All", () => show(...whole)], ["Zoom in", step(0.25, -0.25)], ["Zoom out", step(-0.5, 0.5)], ["Earlier", step(-0.5, -0.5)], ["Later", step(0.5, 0.5)]])
    document.getElementById("toolbar").append(make("button", {type: "button", onclick: act, disabled: !data.drawn.length}, name));
document.getElementById("toolbar").append(make("output", {id: "range"}));
/* At first the time in which there were requests, if it is a small part of the capture. */
const since = (ns) => Number(BigInt(ns) - BigInt(data.start ?? 0));
const busy = [Math.min(...explain.account.map((a) => since(a.first_ns))), Math.max(...explain.account.map((a) => since(a.last_ns)))];
const margin = (busy[1] - busy[0]) / 20;
if (data.drawn.length && margin > 0 && busy[1] - busy[0] < whole[1] / 2)
    show(busy[0] - margin, busy[1] + margin);
else
    show(...whole);

/* On paper there is nothing to click: the numbers of the figures are open, and the figures as wide as the paper. */
const PAPER = [680, 230]; /* pixels of a figure */
addEventListener("beforeprint", () => {
    document.querySelectorAll("details.numbers:not([open])").forEach((d) => { d.open = true; d.dataset.closed = "yes"; });
    view.members.forEach((m) => m.graph && m.graph.resize(...PAPER));
});
addEventListener("afterprint", () => {
    document.querySelectorAll("details[data-closed]").forEach((d) => { d.open = false; delete d.dataset.closed; });
    document.querySelectorAll(".plot").forEach((p) => { p.style.width = p.style.height = ""; });
    view.members.forEach((m) => m.graph && m.graph.resize());
});

/* Colours are read when a figure is made. */
function redraw() {
    const again = overall.filter((m) => m.member.graph).map((m) => m.member);
    again.forEach((m) => { m.graph.destroy(); m.start(); });
    if (data.drawn.length)
        pick(Number(document.getElementById("pick").value));
    show(view.from, view.to);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("resize", () => show(view.from, view.to));
document.body.dataset.ready = "yes";
