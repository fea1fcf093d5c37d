#!/usr/bin/env python3
"""Opens reports in Chromium and checks what no test of text can: that nothing is cut off, lies on
something else, is too pale or too small, asks the network for anything, or is lost on paper.

    check.py [--shots DIRECTORY] REPORT.html...

Results in the form of the Test Anything Protocol. With --shots, pictures of every page."""

import argparse
import base64
import pathlib
import re
import sys

from devtools import Browser, Page

HERE = pathlib.Path(__file__).resolve().parent
CHECKS = (HERE / "checks.js").read_text()
WIDTHS = [360, 800, 1280]
# A4 less the margins that the browser prints with by default, at 96 px to the inch.
PAPER = 718
SHOT = 1600

failed = False


def report(name, problems):
    global failed
    print(("not ok - " if problems else "ok - ") + name)
    for problem in problems[:12]:
        print("#", problem)
    if len(problems) > 12:
        print("# and %d more" % (len(problems) - 12))
    failed = failed or bool(problems)


def ask(page, check):
    return page.evaluate("(%s).%s()" % (CHECKS.strip(), check))


def url(path):
    return path.resolve().as_uri()


def shoot(page, folder, name):
    """Pictures from the top down, each as high as a reader's screen or two."""
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = false; })")
    size = page.call("Page.getLayoutMetrics")["cssContentSize"]
    for number, top in enumerate(range(0, int(size["height"]), SHOT)):
        height = min(SHOT, size["height"] - top)
        clip = {"x": 0, "y": top, "width": size["width"], "height": height, "scale": 1}
        shot = page.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        (folder / ("%s-%02d.png" % (name, number))).write_bytes(base64.b64decode(shot["data"]))


def on_screen(browser, path, shots):
    for dark in [False, True]:
        light = "dark" if dark else "light"
        for width in WIDTHS:
            page = Page(browser, width=width, dark=dark)
            page.open(url(path))
            name = "%s-%s-%d" % (path.stem, light, width)
            report(name + "-fits", ask(page, "width"))
            report(name + "-texts-are-in-their-drawings", ask(page, "inside"))
            report(name + "-texts-are-apart", ask(page, "overlaps"))
            report(name + "-texts-are-large-enough", ask(page, "legible"))
            report(name + "-texts-stand-out", ask(page, "contrast"))
            if width == WIDTHS[0] and not dark:
                report(path.stem + "-holds-together", ask(page, "structure"))
            report(name + "-no-complaint-and-no-request", page.complaints())
            if shots:
                shoot(page, shots, name)
            page.close()


def without_script(browser, path):
    """The page is the same with scripts forbidden: as many tables and rows, and all drawings."""
    def count(page):
        root = page.call("DOM.getDocument", depth=1)["root"]["nodeId"]
        of = lambda what: page.call("DOM.querySelectorAll", nodeId=root, selector=what)["nodeIds"]
        return [len(of(what)) for what in ["table", "tr", "svg", "title"]]

    counts = []
    for forbidden in [False, True]:
        page = Page(browser)
        page.call("Emulation.setScriptExecutionDisabled", value=forbidden)
        page.open(url(path))
        counts.append(count(page))
        page.close()
    same = counts[0] == counts[1] and counts[0][0] > 0
    report(path.stem + "-needs-no-script", [] if same else ["tables, rows, drawings: %s" % counts])


def on_paper(browser, path, shots):
    page = Page(browser, width=PAPER, height=1040, media="print")
    page.open(url(path))
    report(path.stem + "-nothing-is-cut-off-on-paper", ask(page, "paper"))
    report(path.stem + "-texts-stand-out-on-paper", ask(page, "contrast"))
    chapters = page.evaluate("document.querySelectorAll('h2.chapter').length")
    if shots:
        shoot(page, shots, path.stem + "-print")
    page.close()
    # A dark screen must not make dark paper.
    page = Page(browser, width=PAPER, height=1040, dark=True, media="print")
    page.open(url(path))
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    report(path.stem + "-paper-is-white", [] if paper == "rgb(255, 255, 255)" else [paper])
    page.close()
    # No medium is feigned here: the browser prints as it does for people.
    page = Page(browser, media="")
    page.open(url(path))
    # 8.27 by 11.69 inches: A4.
    printed = page.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=True)
    page.close()
    pdf = base64.b64decode(printed["data"])
    if shots:
        (shots / (path.stem + ".pdf")).write_bytes(pdf)
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))
    # Each chapter but the last few, short ones begins a page, after the first page's head.
    enough = pages >= max(1, chapters - 2)
    report(path.stem + "-prints", [] if enough else ["%d pages for %d chapters" % (pages, chapters)])


def checks_find_what_is_broken(browser):
    """Every check must be able to fail."""
    page = Page(browser, width=360)
    page.open(url(HERE / "broken.html"))
    for check in ["width", "inside", "overlaps", "legible", "contrast", "structure"]:
        found = ask(page, check)
        report("check-%s-finds-what-is-broken" % check, [] if found else ["it found nothing"])
    complaints = " ".join(page.complaints())
    for word in ["console:", "request:"]:
        report("check-%s-finds-what-is-broken" % word.strip(":"), [] if word in complaints else [complaints])
    page.emulate(False, "print")
    found = " ".join(ask(page, "paper"))
    good = "cut off" in found and "not on paper" in found and "the paper is" in found
    report("check-paper-finds-what-is-broken", [] if good else [found])
    page.close()


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--shots", type=pathlib.Path)
    arguments.add_argument("reports", nargs="+", type=pathlib.Path)
    arguments = arguments.parse_args()
    if arguments.shots:
        arguments.shots.mkdir(parents=True, exist_ok=True)
    browser = Browser()
    try:
        checks_find_what_is_broken(browser)
        for path in arguments.reports:
            on_screen(browser, path, arguments.shots)
            without_script(browser, path)
            on_paper(browser, path, arguments.shots)
    finally:
        browser.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
