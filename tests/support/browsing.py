"""A browser for tests of pages."""

from __future__ import annotations

import shutil

import pytest


class browser:
    """A headless Chromium without a network; skips the test where it is not installed."""

    def __init__(self, webdriver):
        binary, service = shutil.which("chromium"), shutil.which("chromedriver")
        if binary is None or service is None:
            pytest.skip("chromium and chromium-driver are not installed")
        self.webdriver, self.binary, self.service = webdriver, binary, service

    def __enter__(self):
        options = self.webdriver.ChromeOptions()
        options.binary_location = self.binary
        switches = (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1200,900",
        )
        for switch in (*switches, "--host-resolver-rules=MAP * ~NOTFOUND"):
            options.add_argument(switch)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = self.webdriver.Chrome(options=options, service=self.webdriver.ChromeService(self.service))
        return self.driver

    def __exit__(self, *error):
        self.driver.quit()
