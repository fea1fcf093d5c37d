"""Chromium without a window, driven over the two pipes of its DevTools protocol: no library, no
port. What is not here: what to check."""

import json
import os
import subprocess
import tempfile
import threading
from queue import Empty, Queue

ANSWER_SECONDS = 120


class Browser:
    """A browser of its own, with a profile that ends with it."""

    def __init__(self, program="chromium"):
        self.profile = tempfile.TemporaryDirectory(prefix="weir-browser.")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        words = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--hide-scrollbars", "--disable-background-networking",
            "--disable-component-update", "--disable-extensions", "--remote-debugging-pipe",
            "--user-data-dir=" + self.profile.name, "about:blank",
        ]
        # The browser reads commands from descriptor 3 and answers on 4.
        shell = 'exec "$@" 3<&%d 4>&%d' % (theirs_in, theirs_out)
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash"] + words,
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self.profile.name},
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.out = os.fdopen(ours_out, "wb", buffering=0)
        self.messages = Queue()
        self.number = 0
        self.events = []
        threading.Thread(target=self._read, args=(ours_in,), daemon=True).start()

    def _read(self, descriptor):
        rest = b""
        with os.fdopen(descriptor, "rb", buffering=0) as pipe:
            while piece := pipe.read(1 << 20):
                *whole, rest = (rest + piece).split(b"\0")
                for message in whole:
                    self.messages.put(json.loads(message))
        self.messages.put(None)

    def _next(self):
        try:
            message = self.messages.get(timeout=ANSWER_SECONDS)
        except Empty:
            raise RuntimeError("the browser does not answer") from None
        if message is None:
            raise RuntimeError("the browser ended")
        return message

    def call(self, method, session=None, **params):
        """Sends a command and gives its result; what happens meanwhile joins `events`."""
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self.out.write(json.dumps(message).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError("%s: %s" % (method, message["error"]["message"]))
                return message["result"]
            self.events.append(message)

    def wait(self, method):
        """Waits for an event, unless it has come already."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._next())

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(timeout=20)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()


class Page:
    """One page of a browser, with everything it complains about."""

    def __init__(self, browser, width=1280, height=900, dark=False, media="screen"):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network", "DOM"]:
            self.call(domain + ".enable")
        self.resize(width, height)
        self.emulate(dark, media)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def resize(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def emulate(self, dark, media="screen"):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def open(self, url):
        self.browser.events.clear()
        self.url = url
        self.call("Page.navigate", url=url)
        self.browser.wait("Page.loadEventFired")

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def complaints(self):
        """Errors and messages of the console, and requests for anything but the page itself."""
        found = []
        for event in self.browser.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append("exception: %s" % params["exceptionDetails"].get("text"))
            elif event.get("method") == "Runtime.consoleAPICalled":
                found.append("console: %s" % params["args"])
            elif event.get("method") == "Log.entryAdded":
                found.append("log: %s" % params["entry"]["text"])
            elif event.get("method") == "Network.requestWillBeSent":
                if params["request"]["url"].split("#")[0] != self.url:
                    found.append("request: %s" % params["request"]["url"])
        return found

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
