"""What a test says that an application does: the page hears it in place of what its instances answer."""

from __future__ import annotations

from tests.page.browser import Browser

_HEARS = """
    const ask = window.fetch;
    window.fetch = async (address, ...rest) => {
        const answer = await ask(address, ...rest);
        if (!answer.ok || !address.startsWith("v1/activity")) return answer;
        const activity = await answer.json();
        (%s)(activity.instances);
        return Response.json(activity);
    };
"""

_POLLS = """
    const before = window.fetch;
    window.polls = 0;
    window.fetch = (...all) => { window.polls += 1; return before(...all); };
"""


def pretend(page: Browser, change: str) -> None:
    """Change what the page hears of instances, by a function of JavaScript."""
    page.driver.execute_script(_HEARS % change)


def polls(page: Browser, times: int) -> None:
    """Wait until the page has asked so often, and has shown all answers but the last."""
    page.driver.execute_script(_POLLS)
    page.until(lambda: page.driver.execute_script("return window.polls") > times)
