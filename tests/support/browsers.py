"""A headless Chromium, for tests of pages; without one they are skipped."""

import os
import shutil

REQUIRED = os.environ.get("ACLNN_REQUIRE_BROWSER", "0") not in ("", "0")


def start():
    """A headless Chromium, or the reason why there is none."""
    driver, browser = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or browser is None:
        return None, "no chromium and chromedriver on this machine"
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ModuleNotFoundError:
        return None, "selenium is not installed"
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.add_argument("--window-size=1280,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver)), ""
