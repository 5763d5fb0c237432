"""Debian's Chromium without a window, driven by playwright-core (drive.js), which npm installs as the lock file here says."""
import json
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = shutil.which("chromium") or shutil.which("chromium-browser")
SCALE = float(os.environ.get("TIME_SCALE", "1"))


def packages(folder, to):
    """Have the packages there that the lock file in `folder` names; what hinders that, or None."""
    r = subprocess.run(["src/packaging/npm", folder, to], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if r.returncode not in (0, 77):
        raise RuntimeError("npm: status %d" % r.returncode)
    return r.stdout.strip() if r.returncode else None


class Browser:
    """One page. What it asked for is in `requests`, what it complained of in `errors`. `modules`: the folder that has what npm installed."""

    def __init__(self, modules):
        self.axe = os.path.join(modules, "node_modules/axe-core/axe.min.js")
        env = dict(os.environ, NODE_PATH=os.path.abspath(os.path.join(modules, "node_modules")))
        self.process = subprocess.Popen(["node", os.path.join(HERE, "drive.js"), PATH, str(30000 * SCALE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.requests, self.errors = [], []

    def do(self, code, **values):
        """The value of a piece of JavaScript that calls playwright-core, with `page` and these values by their names."""
        self.process.stdin.write(json.dumps({"code": code, "values": values}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the browser ended")
        answer = json.loads(line)
        self.requests += answer["requests"]
        self.errors += answer["errors"]
        if "error" in answer:
            raise RuntimeError("%s: %s" % (code, answer["error"]))
        return answer.get("value")

    def run(self, script):
        """The value of an expression in the page; a promise is waited for."""
        return self.do("return page.evaluate(script)", script=script)

    def size(self, width, height):
        self.do("await page.setViewportSize({width, height})", width=width, height=height)

    def dark(self, on):
        self.do("await page.emulateMedia({colorScheme})", colorScheme="dark" if on else "light")

    def renew(self, **options):
        """Another page in place of this one, with options of a context of playwright-core."""
        self.do("await page.context().close(); await newPage(options)", options=options)

    def open(self, path, ready="document.body && document.body.dataset.ready === 'yes'"):
        """Open a page; False: the condition never comes true."""
        self.requests.clear()
        self.errors.clear()
        self.do("await page.goto(url)", url="file://" + os.path.abspath(path))
        return self.wait(ready)

    def wait(self, condition):
        """Until an expression in the page is true; False: it never is. (waitForFunction() would need `eval`, which the pages forbid.)"""
        return self.do("for (const end = Date.now() + limit; Date.now() < end; await new Promise((next) => setTimeout(next, 20)))"
                       " if (await page.evaluate(condition)) return true; return false;", condition=condition, limit=20000 * SCALE)

    def move(self, x, y):
        self.do("await page.mouse.move(x, y)", x=x, y=y)

    def click(self, x, y):
        self.do("await page.mouse.click(x, y)", x=x, y=y)

    def drag(self, x1, y1, x2, y2):
        self.do("await page.mouse.move(x1, y1); await page.mouse.down(); await page.mouse.move(x2, y2, {steps: 4}); await page.mouse.up()", x1=x1, y1=y1, x2=x2, y2=y2)

    def press(self, key):
        self.do("await page.keyboard.press(key)", key=key)

    def picture(self, path, of=None, whole=False):
        """What is shown, or the whole page, or what is shown of the element of a selector."""
        clip = None
        if of:
            clip = self.run("(() => { const r = document.querySelector('%s').getBoundingClientRect();"
                            " return {x: r.x, y: r.y, width: r.width, height: Math.min(r.height, innerHeight - r.y)}; })()" % of)
        self.do("await page.screenshot({path, fullPage: whole, ...(clip ? {clip} : {})})", path=path, whole=whole, clip=clip)

    def pdf(self):
        return bytes(self.do("return [...await page.pdf({printBackground: true})]"))

    def violations(self, of="html", only=None):
        """What axe-core finds in the element of a selector; `only`: by rules with this tag."""
        with open(self.axe, encoding="utf-8") as f:
            axe = f.read()
        if not self.run("typeof axe === 'object'"):
            self.run(axe + "; 0")
        return self.run("axe.run(%s, %s).then((r) => r.violations.map((v) => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 200), v.nodes[0].failureSummary.slice(0, 200)]))"
                        % (json.dumps(of), json.dumps({"resultTypes": ["violations"], **({"runOnly": [only]} if only else {})})))

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
