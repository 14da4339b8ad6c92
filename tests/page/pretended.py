"""An application that does what a test says: the page hears something else than what its instances answer."""

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


def pretend(page: Browser, change: str) -> None:
    """Change what the page hears of instances, by a function of JavaScript."""
    page.driver.execute_script(_HEARS % change)
