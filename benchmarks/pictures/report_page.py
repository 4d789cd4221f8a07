"""The picture of README.md and docs/report.md: a screenshot of the report of `make demo`, with one message chosen.

    make demo
    python -m benchmarks.pictures.report_page [build/demo/report.html] [docs/images/report.png]

Needs Chromium (`apt-get install chromium`).
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.command import command

SIZE = "1280,1265"  # pixels
# Chooses the message with the most matches, as somebody who moves the slider would.
CHOOSE = """<script>addEventListener("load", () => {
  const given = JSON.parse(document.getElementById("facts").textContent).messages;
  const slider = document.getElementById("which");
  slider.value = given.reduce((best, one, k) => (one.matches > given[best].matches ? k : best), 0);
  slider.oninput();
});</script>"""


def photograph(page: Path, picture: Path) -> None:
    """Write a screenshot of a report."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("no Chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        chosen = Path(folder) / "report.html"
        chosen.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{CHOOSE}</body>"), encoding="utf-8")
        subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={SIZE}",
             "--virtual-time-budget=20000", f"--screenshot={picture.resolve()}", chosen.as_uri()],
            check=True,
        )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=command(), description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="?", type=Path, default=Path("build/demo/report.html"))
    parser.add_argument("picture", nargs="?", type=Path, default=Path("docs/images/report.png"))
    photograph(**vars(parser.parse_args()))
