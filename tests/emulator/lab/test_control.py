"""The lab's settings of control: where broker and agents are, and what is never shown."""

import pytest

from emulator.lab.model import Control

URL = "mqtt://user:very-secret@broker.lab:1883"


def test_user_and_password_of_a_broker_are_kept_but_not_shown() -> None:
    """Records, `lab show` and messages hold the address alone."""
    control = Control(broker=URL)
    assert control.broker == URL
    assert control.model_dump(mode="json")["broker"] == "mqtt://broker.lab:1883"
    assert "very-secret" not in control.model_dump_json()
    assert "very-secret" not in repr(control)


@pytest.mark.parametrize("url", ["embedded", "mqtt://h:1", "mqtts://broker.lab"])
def test_an_address_without_a_login_is_shown_as_it_is(url: str) -> None:
    """Nothing is lost."""
    assert Control(broker=url).model_dump()["broker"] == url
