"use strict";
/* Elements, numbers and tables of the report. All text of the data becomes text nodes: nothing in it is read as HTML. */

/* Where the packet of an incident was lost: the two taps between which it was, if they are known. */
function whereLost(i) {
    return i.passed_tap && i.missed_tap ? "between " + i.passed_tap + " and " + i.missed_tap : i.place || "";
}

/* What is stored of explain, or of all, as the data of a page: without figures, for which the packets are needed. */
function complete(stored) {
    const explain = stored.explain || stored;
    const first = Math.min(...explain.account.map((a) => a.first_ns)), last = Math.max(...explain.account.map((a) => a.last_ns));
    const causes = new Map();
    for (const i of explain.incidents) {
        const where = whereLost(i), key = i.cause + "/" + where;
        const c = causes.get(key) || {cause: i.cause, where, count: 0, bill_ns: 0, meaning: i.meaning};
        causes.set(key, {...c, count: c.count + 1 + i.more_frames, bill_ns: c.bill_ns + i.bill_ns});
    }
    const flows = stored.flows || {flows: []}, check = stored.check || {findings: [], assumptions: "not stored", summary: null};
    return {verdict: explain.incident_count + (explain.incident_count === 1 ? " incident was" : " incidents were") + " stored.", files: [...new Set(explain.account.map((a) => a.tap))],
        duration_ns: explain.account.length ? last - first : 1, causes: [...causes.values()], explain, account_count: explain.account.length, check,
        finding_count: check.findings.length, flows, flow_count: flows.flows.length, hosts: [], episodes: [], windows: [], drawn: [], latency: [], pauses: [], clocks: [], ladders: [], incast: null, ack_delay: [], link_bps: null, by_host: null, by_dscp: null};
}

const given = JSON.parse(document.getElementById("data").textContent);
const data = given.stored ? complete(given.stored) : given;

/* An element: make("td", {class: "number"}, "text", child, ...). */
function make(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {}))
        if (key.startsWith("on"))
            element.addEventListener(key.slice(2), value);
        else if (value !== null && value !== undefined && value !== false)
            element.setAttribute(key, value === true ? "" : value);
    element.append(...children.filter((c) => c !== null && c !== undefined));
    return element;
}

function makeSvg(name, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes || {}))
        element.setAttribute(key, value);
    element.append(...children);
    return element;
}

const TIME_UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];

/* A time in ns with its unit and `digits` significant digits. */
function duration(ns, digits = 4) {
    if (ns === null || ns === undefined)
        return "-";
    const [size, unit] = TIME_UNITS.find(([u]) => Math.abs(ns) >= u) || TIME_UNITS[3];
    return +(ns / size).toPrecision(digits) + " " + unit;
}

const time = (ns) => duration(ns);

/* A time of the axis: all labels have the unit of the time shown. */
function moment(ns, shown) {
    const [size, unit] = TIME_UNITS.find(([u]) => shown >= u) || TIME_UNITS[3];
    const digits = Math.max(0, Math.ceil(Math.log10(size / Math.max(shown, 1) * 500)));
    return (ns / size).toFixed(Math.min(digits, 6)) + " " + unit;
}

const COUNT_UNITS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

/* A number with a unit prefix: 3.4 Gbit/s. */
function amount(n, unit = "") {
    const [size, prefix] = COUNT_UNITS.find(([u]) => Math.abs(n) >= u) || [1, ""];
    return +(n / size).toPrecision(4) + (prefix || unit ? " " : "") + prefix + unit;
}

const plain = (n) => (n === null || n === undefined ? "-" : String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f"));

/* Order of two values of a column: numbers by value, null last. */
function order(a, b) {
    if (a === null || b === null || a === undefined || b === undefined)
        return (a === null || a === undefined) - (b === null || b === undefined);
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

/* A column of a table: title, its value in a row, and how it is shown (text, or a node). */
const text = (title, value, show) => ({title, value, show: show || ((v) => (v === null || v === undefined ? "-" : String(v)))});
const number = (title, value, show) => ({title, value, show: show || plain, number: true});

/* Short texts stay in one line, long ones get room. A narrow screen shows a row as a card, each value below its name (report.css); the
 * roles say that it still is a table. */
function cell(column, shown) {
    const length = (shown.textContent || shown).length;
    return make("td", {role: "cell", "data-name": column.title, class: column.number ? "number" : length <= 12 ? "word" : length <= 22 ? "word long" : length > 60 && "words"}, shown);
}

function fillRows(body, columns, rows) {
    body.replaceChildren(...rows.map((row) => make("tr", {role: "row"}, ...columns.map((c) =>
        cell(c, c.show(c.value(row), row))))));
}

/* The column of a frame, which leads to it. */
const frames = (value) => number("frame", value, (v) => (v ? make("button", {type: "button", onclick: () => choose(v)}, String(v)) : "-"));

/* A table whose heads sort it. */
function table(caption, columns, rows) {
    const body = make("tbody", {role: "rowgroup"});
    const shown = {rows, sorted: null, down: false};
    const draw = () => {
        const list = shown.rows.slice();
        if (shown.sorted)
            list.sort((a, b) => (shown.down ? -1 : 1) * order(shown.sorted.value(a), shown.sorted.value(b)));
        fillRows(body, columns, list);
    };
    const heads = columns.map((c) => {
        const head = make("th", {role: "columnheader", scope: "col", class: c.number && "number"});
        head.append(make("button", {type: "button", onclick: () => {
            shown.down = shown.sorted === c ? !shown.down : Boolean(c.number);
            shown.sorted = c;
            heads.forEach((h) => h.removeAttribute("aria-sort"));
            head.setAttribute("aria-sort", shown.down ? "descending" : "ascending");
            draw();
        }}, c.title));
        return head;
    });
    draw();
    const element = make("table", {role: "table"}, make("caption", {}, caption), make("thead", {role: "rowgroup"}, make("tr", {role: "row"}, ...heads)), body);
    return {element, draw, shown};
}

/* The same in a box that scrolls, with a filter above it if it is long. */
function tableBox(caption, columns, rows) {
    const t = table(caption, columns, rows);
    const box = make("div", {class: "scroll" + (rows.length > 12 ? " tall" : ""), tabindex: "0", role: "region", "aria-label": caption}, t.element);
    if (rows.length <= 5)
        return box;
    const words = (row) => columns.map((c) => { const s = c.show(c.value(row), row); return s.textContent || s; }).join(" ").toLowerCase();
    const count = make("span", {role: "status"});
    const input = make("input", {type: "search", "aria-label": "Rows with these words: " + caption, oninput: () => {
        const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        t.shown.rows = rows.filter((row) => wanted.every((w) => words(row).includes(w)));
        count.textContent = " " + t.shown.rows.length + " of " + rows.length;
        t.draw();
    }});
    return make("div", {}, make("p", {class: "filter"}, "Rows with: ", input, count), box);
}

/* The table of a figure, closed at first. */
function numbers(caption, columns, rows) {
    return make("details", {class: "numbers"}, make("summary", {}, "Numbers: " + caption), tableBox(caption, columns, rows));
}

/* A text whose options are not torn at the end of a line. */
const withOptions = (words) => words.split(/(--[a-z][a-z-]*)/).map((w, i) => (i % 2 ? make("span", {class: "option"}, w) : w));

/* A figure: its title, its sentence, what is drawn, its table. */
function figure(id, title, sentence, drawing, ...more) {
    const head = make("h3", {id: "figure-" + id}, title);
    return make("figure", {"data-figure": id, "aria-labelledby": "figure-" + id}, head, make("p", {}, ...withOptions(sentence)), drawing, ...more);
}

function section(id, title, ...children) {
    const element = make("section", {id, "aria-labelledby": id + "-title"}, make("h2", {id: id + "-title"}, title), ...children);
    document.getElementById("main").append(element);
    return element;
}
