/* Chromium by playwright-core: drive.js PROGRAM MILLISECONDS, which one call may take. Each line of standard input is
 * {code, values} as JSON: the body of an asynchronous function, which has `browser`, `page` and the values by their
 * names. The answer is a line: {value}, or {error}; with it what the page asked for and what it complained of since the
 * line before. */
const {chromium} = require("playwright-core");
const AsyncFunction = (async () => {}).constructor;
let requests = [], errors = [];

/* A page of its own, that no network is there for. */
async function newPage(browser, options) {
    const context = await browser.newContext({offline: true, ...options});
    const page = await context.newPage();
    page.setDefaultTimeout(Number(process.argv[3]));
    page.on("request", (r) => requests.push(r.url()));
    page.on("pageerror", (e) => errors.push(String(e)));
    page.on("console", (m) => ["error", "warning"].includes(m.type()) && errors.push(m.text()));
    return page;
}

(async () => {
    const browser = await chromium.launch({executablePath: process.argv[2], chromiumSandbox: false});
    let page = await newPage(browser);
    for await (const line of require("readline").createInterface({input: process.stdin})) {
        const {code, values} = JSON.parse(line);
        const known = {browser, page, newPage: (options) => newPage(browser, options), ...values};
        let answer;
        try {
            answer = {value: await new AsyncFunction(...Object.keys(known), code)(...Object.values(known))};
            page = browser.contexts().at(-1).pages()[0];
        } catch (e) {
            answer = {error: String(e)};
        }
        console.log(JSON.stringify({...answer, requests, errors}));
        requests = [];
        errors = [];
    }
    await browser.close();
})();
