"""Debian's Chromium without a window, driven by the DevTools protocol over a pipe."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

PATH = shutil.which("chromium") or shutil.which("chromium-browser")
SCALE = float(os.environ.get("TIME_SCALE", "1"))


class Browser:
    """One page. What it asked for is in `requests`, what it complained of in `errors`."""

    def __init__(self):
        self.home = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()
        # the browser reads commands from descriptor 3, and writes answers to 4
        shell = ["sh", "-c", 'exec "$@" 3<&%d 4>&%d' % (to_read, back_write), "sh"]
        self.process = subprocess.Popen(
            shell + [PATH, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", "--disable-dev-shm-usage",
                     "--disable-background-networking", "--disable-component-update", "--user-data-dir=" + self.home, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(to_read, back_write), start_new_session=True)
        os.close(to_read)
        os.close(back_write)
        self.rest = b""
        self.number = 0
        self.session = None
        self.requests, self.errors = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def _take(self):
        while b"\0" not in self.rest:
            part = os.read(self.back, 1 << 20)
            if not part:
                raise RuntimeError("the browser ended")
            self.rest += part
        one, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(one)
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(json.dumps(params["args"]))
        return message

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._take()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]

    def run(self, script):
        """The value of an expression in the page; a promise is waited for."""
        r = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise RuntimeError("%s: %s" % (script, r["exceptionDetails"].get("exception", {}).get("description")))
        return r["result"].get("value")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def open(self, path):
        self.requests.clear()
        self.errors.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        return self.wait("document.body && document.body.dataset.ready === 'yes'")

    def wait(self, condition):
        until = time.monotonic() + 20 * SCALE
        while time.monotonic() < until:
            if self.run(condition):
                return True
            time.sleep(0.02)
        return False

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, x1, y1, x2, y2):
        self.mouse("mouseMoved", x1, y1)
        self.mouse("mousePressed", x1, y1, button="left", clickCount=1)
        for i in range(1, 5):
            self.mouse("mouseMoved", x1 + (x2 - x1) * i / 4, y1 + (y2 - y1) * i / 4, button="left", buttons=1)
        self.mouse("mouseReleased", x2, y2, button="left", clickCount=1)

    def picture(self, path, whole=False, scale=None, of=None):
        """What is shown, or the whole page; `scale`: smaller than it is; `of`: only what is shown of the element of this selector."""
        x, y, w, h = self.run("[scrollX, scrollY, innerWidth, innerHeight]")
        if of:
            left, top, width, height = self.run("(() => { const r = document.querySelector('%s').getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()" % of)
            x, y, w, h = x + left, y + top, width, min(height, h - top)
        clip = {} if scale is None else {"clip": {"x": x, "y": y, "width": w, "height": h, "scale": scale}}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **clip)
        with open(path, "wb") as f:
            f.write(base64.b64decode(shot["data"]))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.home, ignore_errors=True)
