"""A headless Chromium that looks at the page, and keeps pictures of what it saw."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
PICTURES = Path("build/pages")
_PATIENCE_S = 120


class Browser:
    """Drives one tab; elements are named by CSS selectors."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        self.driver.get("about:blank")  # else an address that differs behind the # alone loads nothing
        self.driver.get(address)

    def find(self, selector: str) -> WebElement:
        """The element, as soon as it is there and shown."""
        return self.until(lambda: next((each for each in self.all(selector) if each.is_displayed()), None))

    def all(self, selector: str) -> list[WebElement]:
        return list(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def text(self, selector: str) -> str:
        return self.driver.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def texts(self, selector: str) -> list[str]:
        return self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector
        )

    def click(self, selector: str) -> None:
        self.find(selector).click()

    def write(self, selector: str, text: str) -> None:
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def until(self, condition: Callable[[], Any]) -> Any:
        """What a condition gives, once that is true; elements that the page replaces meanwhile are looked for again."""
        return WebDriverWait(self.driver, _PATIENCE_S, 0.1, (WebDriverException,)).until(lambda _: condition())

    def dark(self, dark: bool = True) -> None:
        """Show what a reader sees whose system is dark."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def picture(self, name: str) -> Path:
        """Keep what is seen now."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        file = PICTURES / f"{name}.png"
        file.write_bytes(self.driver.get_screenshot_as_png())
        return file

    def complaints(self) -> list[str]:
        """What the console says of errors, and of what the content security policy has refused."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


@contextmanager
def browser(width: int = 1440, height: int = 900) -> Iterator[Browser]:
    """A new Chromium, without anything of an earlier one."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.add_argument(f"--window-size={width},{height}")
    options.accept_insecure_certs = True  # an authority of the tests' own has signed them
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
