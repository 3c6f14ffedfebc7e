from pathlib import Path

import msgspec
import pytest

from gateway.config import KEYS, Config, Loaded, load, variable
from gateway.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gateway.toml"


def origin(loaded: Loaded, key: str) -> tuple[object, str]:
    return next((setting.value, setting.source) for setting in loaded.effective() if setting.key == key)


def test_without_any_layer_everything_is_a_default(file: Path) -> None:
    loaded = load(file, {"PATH": "/bin", "GATEWAY_HOME": "/x", "GATEWAY_AGENT": "jen"}, {"listen.port": None})
    assert loaded.config == Config()
    assert [setting.key for setting in loaded.effective()] == list(KEYS)
    assert {setting.source for setting in loaded.effective()} == {"default"}


def test_flags_beat_the_environment_which_beats_the_file(file: Path) -> None:
    file.write_text("[retry]\nfirst_ms = 10\ncap_ms = 20\nattempts = 3\n")
    environ = {"GATEWAY_RETRY_CAP_MS": "21", "GATEWAY_RETRY_ATTEMPTS": "4"}
    loaded = load(file, environ, {"retry.attempts": 5})
    retry = loaded.config.retry
    assert (retry.first_ms, retry.cap_ms, retry.attempts) == (10, 21, 5)
    assert origin(loaded, "retry.first_ms") == (10, str(file))
    assert origin(loaded, "retry.cap_ms") == (21, "GATEWAY_RETRY_CAP_MS")
    assert origin(loaded, "retry.attempts") == (5, "flag")
    assert origin(loaded, "retry.ack_timeout_ms")[1] == "default"


def test_the_environment_speaks_text_for_every_type(file: Path) -> None:
    environ = {
        "GATEWAY_PUBLIC_ENDPOINTS": "http://127.0.0.1:7420, https://vps.example",
        "GATEWAY_LISTEN_ALLOW_PLAIN": "true",
        "GATEWAY_LISTEN_HOST": "100.64.0.3",
        "GATEWAY_LOG_LEVEL": "debug",
    }
    config = load(file, environ, {}).config
    assert config.public.endpoints == ("http://127.0.0.1:7420", "https://vps.example")
    assert (config.listen.host, config.listen.allow_plain, config.log.level) == ("100.64.0.3", True, "debug")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[retry]\nfirst_msec = 10", "retry.first_ms"),
        ("[curier]\nlease_ms = 10", "courier.lease_ms"),
        ("[lisen]\n", "listen"),
        ("lease_ms = 10", "courier.lease_ms"),
        ("[telepathy]\nx = 1", "gateway config show"),
    ],
)
def test_an_unknown_key_names_the_nearest_one(file: Path, text: str, hint: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match="no setting") as refused:
        load(file, {}, {})
    assert hint in refused.value.hint


def test_a_misspelt_variable_of_ours_names_the_nearest_one_and_others_are_left_alone(file: Path) -> None:
    foreign = {"GATEWAY_PORT": "tcp://10.0.0.1:80", "GATEWAY_SERVICE_HOST": "10.0.0.1"}
    assert load(file, foreign, {}).config == Config()
    with pytest.raises(ConfigError) as refused:
        load(file, {"GATEWAY_RETRY_ATEMPTS": "3"}, {})
    assert "GATEWAY_RETRY_ATTEMPTS" in refused.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "[listen]\nport = 65536",
        "[listen]\nport = '7420'",
        "[listen]\nport = true",
        "[listen]\nhost = '0.0.0.0'",
        "[listen]\nhost = 'vps.example'",
        "listen = 5",
        "[retry]\nattempts = 0",
        "[retry]\nfirst_ms = 100\ncap_ms = 50",
        "[retry]\nfirst_ms = 1.5",
        "[log]\nlevel = 'loud'",
        "[public]\nendpoints = 'http://127.0.0.1'",
        "[public]\nendpoints = ['ftp://127.0.0.1']",
        "[public]\nendpoints = ['http://user:pw@127.0.0.1']",
        "[public]\nendpoints = ['http://127.0.0.1/path']",
        "[public]\nendpoints = ['http://127.0.0.1:99999']",
        "[public]\nendpoints = ['http://']",
        "[retry",
    ],
)
def test_a_value_that_cannot_be_is_refused_with_a_hint(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(file, {}, {})
    assert refused.value.hint


def test_an_unreadable_file_is_an_error_and_not_the_defaults(file: Path) -> None:
    file.mkdir()
    with pytest.raises(ConfigError):
        load(file, {}, {})


def test_bytes_that_are_no_text_are_an_error(file: Path) -> None:
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError):
        load(file, {}, {})


def test_the_numbers_reach_engine_and_courier() -> None:
    config = msgspec.convert(
        {
            "retry": {"first_ms": 1, "cap_ms": 2, "attempts": 3, "ack_timeout_ms": 4},
            "sla": {"process_ms": 5, "accept_ms": 6},
            "courier": {"lease_ms": 7, "max_deliveries": 8},
        },
        Config,
    )
    policy, limits = config.policy(), config.courier_limits()
    retry = policy.retry
    assert (retry.first_ms, retry.cap_ms, retry.attempts_max, retry.ack_timeout_ms) == (1, 2, 3, 4)
    assert (policy.sla_process_ms, policy.sla_accept_ms) == (5, 6)
    assert (limits.lease_ms, limits.max_deliveries) == (7, 8)


def test_who_may_not_read_all_keeps_no_copies() -> None:
    copies = msgspec.convert({"mirror": {"nodes": "all"}}, Config)
    assert copies.policy().mirror.nodes == "all"
    assert copies.policy(reads_all=False).mirror.nodes == "none"
    assert copies.policy(seed=True, reads_all=False).mirror.nodes == "all"


def test_every_setting_has_a_variable_of_its_own() -> None:
    assert len({variable(key) for key in KEYS}) == len(KEYS)
