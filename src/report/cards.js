/* Score cards of rdmagen conformance: one, or several beside each other. */

const cards = data.cards;
const dut = (card) => card.dut.name || card.dut; // cards of schema 1 have a text
const name = (card, k) => (cards.length > 1 ? k + 1 + ". " : "") + dut(card);

document.title = "rdmagen conformance: " + cards.map(dut).join(", ");
document.getElementById("about").textContent = cards.map((c, k) => name(c, k) + ", seed " + c.seed + (c.judged ? "" : ", captures not judged")).join("; ") + ".";

/* How a result is shown: a sign beside the word, for those who see no colours, and a colour of the style. */
const SHOWN = {pass: ["✓", 2], known: ["≈", 7], info: ["i", 7], weak: ["~", 3], fail: ["✗", 1], crash: ["✗✗", 1], inconclusive: ["?", 7], unsupported: ["–", 7], error: ["!", 3]};

function result(test) {
    if (!test)
        return make("span", {class: "k7"}, "not run");
    const [sign, color] = SHOWN[test.result] || ["", 7];
    const why = [test.reason, test.judge && "the judge: " + test.judge, test.known && "known: " + test.known].filter(Boolean).join("; ");
    return make("span", {class: "k" + color, title: why || null, "data-result": test.result}, sign + " " + test.result);
}

/* Rows of all cards, each once, in the order of the first card that has it. */
function union(rows) {
    const all = new Map();
    cards.forEach((card, k) => rows(card).forEach((row) => {
        if (!all.has(row.id))
            all.set(row.id, {id: row.id, first: row, of: cards.map(() => null)});
        all.get(row.id).of[k] = row;
    }));
    return [...all.values()];
}

const tests = union((card) => card.tests);
const sum = (card, level, what) => card.score[level][what];
const levels = [["M", "must"], ["S", "should"], ["I", "information"]].filter(([l]) => cards.some((c) => sum(c, l, "tests")));

const groups = union((card) => card.groups || []);
const share = (g) => (g ? g.must_passed + " of " + g.must_applicable + (g.failed ? ", " + g.failed + " failed" : "") + "; " + g.should_missed + "; " + g.applicable + " of " + g.all : "-");

section("sums", "Score", tableBox("How many tests passed, of each level", [
    text("device", (c) => name(c, cards.indexOf(c))),
    ...levels.map(([l, word]) => text(l + " (" + word + ")", (c) => sum(c, l, "pass") + " of " + sum(c, l, "tests") +
        (sum(c, l, "all") === undefined ? "" : "; coverage " + sum(c, l, "applicable") + " of " + sum(c, l, "all")))),
    number("failed", (c) => sum(c, "M", "fail") + (sum(c, "M", "crash") || 0) + (sum(c, "S", "crash") || 0)),
    number("SHOULD missed", (c) => sum(c, "S", "weak")),
    number("unsupported", (c) => levels.reduce((n, [l]) => n + sum(c, l, "unsupported"), 0)),
    text("rules kept", (c) => c.score.rules.kept + " of " + c.score.rules.touched + " that tests touched, of " + c.score.rules.all),
    text("what can be asked", (c) => (c.score.coverage ? c.score.coverage.shown + " of " + c.score.coverage.rows + " rows shown" : "-")),
], cards), groups.length ? tableBox("Groups of tests", [text("group", (g) => g.id),
    ...cards.map((card, k) => text(cards.length > 1 ? "device " + (k + 1) : "must passed, should missed, coverage", (g) => share(g.of[k])))], groups) : null,
    make("p", {}, "A score without its coverage tells little: rules that no test touched were not tried."));

section("tests", "Tests", tableBox("Results of all tests", [
    text("test", (t) => t.id), text("level", (t) => t.first.level), text("what the device has to do", (t) => t.first.title),
    ...cards.map((card, k) => ({title: cards.length > 1 ? "device " + (k + 1) : "result", value: (t) => (t.of[k] ? t.of[k].result : "not run"), show: (v, t) => result(t.of[k])})),
], tests));

/* The command that repeats a test alone, for cards that do not say it. */
function again(card, test) {
    const host = /^twin/.test(dut(card)) ? "--twin" : dut(card).split(":")[0] + " --token-file FILE";
    return "rdmagen conformance " + host + " --seed " + card.seed + " --keep DIR " + test.id;
}

/* Parameters of a cell: "mtu=256 op=write". */
const params = (cell) => Object.entries(cell.params).map(([k, v]) => k + "=" + v).join(" ");

/* What the parts of a test came to that have parameters of their own, by result. */
function cells(test) {
    const results = [...new Set(test.cells.map((c) => c.result))];
    return make("p", {class: "facts"}, results.map((r) => r + ": " + test.cells.filter((c) => c.result === r).map(params).join(", ")).join("; "));
}

function missed(card, test) {
    return make("article", {class: "incident" + (/fail|crash/.test(test.result) ? " certain" : ""), "data-test": test.id},
        make("h3", {}, test.id + ": ", result(test)),
        make("p", {}, test.title + " [" + test.anchor + "]" + (test.rules.length ? ", rules " + test.rules.join(", ") : "") + "."),
        test.reason ? make("p", {}, test.reason) : null,
        test.cells ? cells(test) : null,
        test.judge ? make("p", {}, "The judge: " + test.judge + ".") : null,
        test.known ? make("p", {}, "Known: " + test.known + ".") : null,
        test.runs ? make("p", {class: "facts"}, "Passed in " + test.passed + " of " + test.runs + " runs.") : null,
        make("p", {class: "facts"}, "Again: ", make("code", {}, test.again || again(card, test))),
        test.capture ? make("p", {class: "facts"}, "Capture: ", make("code", {}, test.capture)) : null);
}

section("missed", "What was not as expected", ...cards.map((card, k) => {
    const bad = card.tests.filter((t) => t.result !== "pass");
    if (!bad.length)
        return make("p", {}, name(card, k) + ": all " + plain(card.tests.length) + " tests passed.");
    return make("details", {open: true}, make("summary", {}, name(card, k) + ": " + bad.length + (bad.length === 1 ? " test" : " tests")), ...bad.map((t) => missed(card, t)));
}));

/* --- Metrics -------------------------------------------------------------------------------------- */

const metrics = union((card) => card.metrics);
const of = (m, what) => m[what + "_" + (m.unit || "ns")];
const UNITS = {count: plain, bps: (v) => plain(Math.round(v / 1e6)) + " Mb/s", permille: (v) => (v / 10).toFixed(1) + " %", per_s: (v) => plain(v) + " a second"};
const measured = (m, v) => (UNITS[m.unit] ? UNITS[m.unit](v) : duration(v, 3));
const interval = (m) => (m.n > 1 && of(m, "ci") ? measured(m, of(m, "ci")[0]) + " to " + measured(m, of(m, "ci")[1]) : "n=1, no interval");
const ENDS = {device: "the device or the way", tester: "the tester", both: "both ends"};
const bound = (m) => (ENDS[m.bound] ? "; bounded by " + ENDS[m.bound] + ", the tester waited " + (m.idle_permille / 10).toFixed(1) + " % of the time" : "");
const spread = (m) => (m ? measured(m, of(m, "median")) + " (" + interval(m) + ")" + (m.below_resolution ? ", below resolution" : "") + bound(m) : "-");
const published = metrics.flatMap((m) => m.first.published.map((p) => ({id: m.id, ...p})));

/* What the tester's times are worth: the time of the way, and the error of two stamps; cards of schema 1 have a link. */
const calibrated = (c) => (c.link ? [c.link.least_ns, c.link.error_ns] : c.tester ? [c.tester.L0_ns, c.tester.u_ns] : []);

if (metrics.length)
    section("metrics", "What was measured", make("p", {}, "Medians, with the interval in which they lie with a probability of 95 %. Times include the way there and back; link: " +
        cards.map((c) => calibrated(c)).map(([least, error]) => (least === undefined ? "not measured" : duration(least, 3) + ", error of the time stamps " + duration(error, 3))).join("; ") + "." +
        (cards.some((c) => c.cnp_scope) ? " What the interval between CNPs holds for: " + cards.map((c) => (c.cnp_scope || "not measured").replace("_", " ")).join("; ") + "." : "")),
        tableBox("Metrics", [text("metric", (m) => m.id),
            ...cards.map((card, k) => ({title: cards.length > 1 ? "device " + (k + 1) : "median", value: (m) => (m.of[k] ? of(m.of[k], "median") : null), show: (v, m) => spread(m.of[k])})),
            number("samples", (m) => Math.max(...m.of.map((x) => (x ? x.n : 0))))], metrics),
        published.length ? tableBox("Published values of other devices", [text("metric", (p) => p.id), text("device", (p) => p.device), text("value", (p) => p.value), text("source", (p) => p.source)], published) : null);

/* --- Security ------------------------------------------------------------------------------------- */

const KINDS = {rkey: "R_Keys", qpn: "queue pair numbers", psn: "starting PSNs of RDMA-CM"};
const identities = union((card) => card.identities || []);
const guess = (x) => (x ? x.min_entropy_bits.toFixed(2) + " bits, " + x.conditional_bits.toFixed(2) + " if the step before is known; 0x" + x.step.toString(16) + " is " + (100 * x.share).toFixed(1) + " % of " + (x.n - 1) + " steps; " +
    x.distinct + " of " + x.n + " values differ" : "-");
const attacks = tests.filter((t) => /^sec\//.test(t.id));
const guesses = union((card) => card.guesses || []);
const shown = (x) => (x ? x.shown_by.map((c) => c.counters + " " + c.counted).join(", ") || "none" : "-");
const others = identities.flatMap((x) => x.first.published.map((p) => ({id: KINDS[x.id], ...p})));

if (identities.length || attacks.length)
    section("security", "Security",
        attacks.length ? tableBox("Packets of somebody else: other sources, sweeps", [text("test", (t) => t.id), text("what is sent", (t) => t.first.title),
            ...cards.map((card, k) => ({title: cards.length > 1 ? "device " + (k + 1) : "result", value: (t) => (t.of[k] ? t.of[k].result : "not run"), show: (v, t) => result(t.of[k])}))], attacks) : null,
        guesses.length ? tableBox("Counters that show guesses of a PSN or an R_Key", [text("test", (x) => x.id),
            ...cards.map((card, k) => ({title: cards.length > 1 ? "device " + (k + 1) : "counters", value: (x) => shown(x.of[k]), show: (v) => v}))], guesses) : null,
        identities.length ? make("p", {}, "How hard it is to guess what the device chooses next, for somebody who has seen what it chose before: entropy of the steps from one value to the next.") : null,
        identities.length ? tableBox("Entropy", [text("chosen by the device", (x) => KINDS[x.id]),
            ...cards.map((card, k) => ({title: cards.length > 1 ? "device " + (k + 1) : "entropy of steps", value: (x) => (x.of[k] ? x.of[k].min_entropy_bits : null), show: (v, x) => guess(x.of[k])}))], identities) : null,
        others.length ? tableBox("Published values of other devices", [text("chosen by the device", (p) => p.id), text("device", (p) => p.device), text("value", (p) => p.value), text("source", (p) => p.source)], others) : null);

document.body.dataset.ready = "yes";
