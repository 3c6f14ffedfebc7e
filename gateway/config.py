"""What may be set: ``gateway.toml``, environment ``GATEWAY_<SECTION>_<KEY>``, flags, in rising order.

Settings have names like ``retry.first_ms``. An unknown one is an error that names the nearest known one.
Times are milliseconds. Secrets are never set here.
"""

import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec

from auth.addresses import check_gateway_url, is_loopback
from auth.errors import BadJoinCode
from gateway.courier.limits import CourierLimits
from gateway.engine.pace import PaceLimits
from gateway.engine.policy import MirrorPolicy, Policy
from gateway.engine.policy import Retention as RetentionRule
from gateway.errors import ConfigError
from gateway.limits import BLOBS_BYTES_MAX, BLOBS_MIRRORED_BYTES_MAX
from outbox.errors import InvalidId
from outbox.ids import NodeId, node_id
from outbox.limits import (
    ACK_TIMEOUT_MS,
    ATTEMPTS_MAX,
    BACKOFF_CAP_MS,
    BACKOFF_FIRST_MS,
    KEPT_BYTES,
    KEPT_ENTRIES,
    KEPT_MS,
    READER_LEASE_MS,
)
from outbox.retry import RetryPolicy

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Millis = Annotated[int, msgspec.Meta(ge=1, le=366 * 24 * 3_600_000)]
MirrorWord = Literal["auto", "all", "none"]
MIRROR_WORDS = get_args(MirrorWord)
HostWord = Literal["inline", "process"]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


class Listen(msgspec.Struct, frozen=True):
    """Where peers reach this gateway."""

    host: str = "127.0.0.1"
    port: Port = 7420
    """0: any free one."""
    allow_plain: bool = False
    """Serve others than loopback without TLS; for a tailnet or tunnel that encrypts by itself."""


class Public(msgspec.Struct, frozen=True):
    """What this gateway tells others about itself."""

    endpoints: Annotated[tuple[str, ...], msgspec.Meta(max_length=4)] = ()
    """Base URLs at which peers can dial it; none: it only dials."""


class Local(msgspec.Struct, frozen=True):
    """Where agents reach it beside the Unix socket."""

    port: Port = 0
    """On loopback, always with a token; 0: off."""


class Retention(msgspec.Struct, frozen=True):
    """What the outbox keeps: what is above any of these bounds may be forgotten."""

    age_ms: Millis = KEPT_MS
    entries: Annotated[int, msgspec.Meta(ge=1)] = KEPT_ENTRIES
    bytes: Annotated[int, msgspec.Meta(ge=1)] = KEPT_BYTES
    reader_lease_ms: Millis = READER_LEASE_MS
    """So long what a node has not read waits for it while it does not show itself."""


class Retry(msgspec.Struct, frozen=True):
    """When an unanswered event is sent again."""

    first_ms: Millis = BACKOFF_FIRST_MS
    cap_ms: Millis = BACKOFF_CAP_MS
    attempts: Count = ATTEMPTS_MAX
    ack_timeout_ms: Millis = ACK_TIMEOUT_MS


class Sla(msgspec.Struct, frozen=True):
    """When a delay is an incident."""

    accept_ms: Millis = Policy().sla_accept_ms
    process_ms: Millis = Policy().sla_process_ms


class Answers(msgspec.Struct, frozen=True):
    """How fast two agents, or all in one thread, may answer each other with messages."""

    burst: Count = PaceLimits().burst
    per_minute: Count = PaceLimits().per_minute


class Courier(msgspec.Struct, frozen=True):
    """How turns are handed to agents."""

    lease_ms: Millis = CourierLimits().lease_ms
    max_deliveries: Count = CourierLimits().max_deliveries


class Mirror(msgspec.Struct, frozen=True):
    """Which outboxes of others are copied here and served on."""

    nodes: MirrorWord | Annotated[tuple[str, ...], msgspec.Meta(max_length=1_000)] = "auto"
    """``auto``: all on a seed, none on others. Else names of nodes."""
    bytes_max: Annotated[int, msgspec.Meta(ge=0, le=2**50)] = MirrorPolicy().bytes_max
    """Of all copies together; the oldest part of the largest one goes first."""
    age_ms: Millis = MirrorPolicy().age_ms


class Blobs(msgspec.Struct, frozen=True):
    """What is too large for a message and kept as files."""

    bytes_max: Annotated[int, msgspec.Meta(ge=0, le=2**50)] = BLOBS_BYTES_MAX
    """Of all blobs here together; beyond it uploads are refused and transfers wait."""
    mirrored_bytes_max: Annotated[int, msgspec.Meta(ge=0, le=2**50)] = BLOBS_MIRRORED_BYTES_MAX
    """Of all that is here when one is fetched that only a copy of another outbox names."""


class Engine(msgspec.Struct, frozen=True):
    """Where the journal is written."""

    host: HostWord = "inline"
    """``inline``: in the process that serves, which stands still while the disk confirms. ``process``: in one
    of its own, so that serving goes on meanwhile."""


class Log(msgspec.Struct, frozen=True):
    """What is written down."""

    level: Literal["debug", "info", "warning", "error"] = "info"


class Config(msgspec.Struct, frozen=True):
    """All settings of one gateway."""

    listen: Listen = Listen()
    public: Public = Public()
    local: Local = Local()
    retention: Retention = Retention()
    retry: Retry = Retry()
    sla: Sla = Sla()
    answers: Answers = Answers()
    courier: Courier = Courier()
    mirror: Mirror = Mirror()
    blobs: Blobs = Blobs()
    engine: Engine = Engine()
    log: Log = Log()

    def policy(self, *, seed: bool = False, reads_all: bool = True) -> Policy:
        """The engine's numbers, for a seed or for another node; who may not read all keeps no copies."""
        retry = RetryPolicy(
            first_ms=self.retry.first_ms,
            cap_ms=self.retry.cap_ms,
            attempts_max=self.retry.attempts,
            ack_timeout_ms=self.retry.ack_timeout_ms,
        )
        mirrored = self.mirror.nodes
        if mirrored == "auto":
            mirrored = "all" if seed else "none"
        if not (seed or reads_all):
            mirrored = "none"
        nodes = mirrored if isinstance(mirrored, str) else tuple(map(NodeId, mirrored))
        mirror = MirrorPolicy(nodes=nodes, bytes_max=self.mirror.bytes_max, age_ms=self.mirror.age_ms)
        kept = self.retention
        retention = RetentionRule(
            age_ms=kept.age_ms,
            entries_max=kept.entries,
            bytes_max=kept.bytes,
            reader_lease_ms=kept.reader_lease_ms,
        )
        return Policy(
            retention=retention,
            retry=retry,
            sla_accept_ms=self.sla.accept_ms,
            sla_process_ms=self.sla.process_ms,
            answers=PaceLimits(burst=self.answers.burst, per_minute=self.answers.per_minute),
            mirror=mirror,
        )

    def courier_limits(self) -> CourierLimits:
        """The courier's numbers."""
        return CourierLimits(lease_ms=self.courier.lease_ms, max_deliveries=self.courier.max_deliveries)


class Setting(msgspec.Struct, frozen=True):
    """One effective value."""

    key: str
    value: object
    source: str
    """``default``, the path of the file, the environment variable, or ``flag``."""


class Loaded(msgspec.Struct, frozen=True):
    """A configuration and where each of its values came from."""

    config: Config
    sources: dict[str, str]

    def effective(self) -> list[Setting]:
        """Every setting, in the order of the sections."""
        sections = msgspec.to_builtins(self.config)
        return [
            Setting(key, sections[section][name], self.sources.get(key, "default"))
            for key, (section, name, _) in KEYS.items()
        ]


def _keys() -> Iterator[tuple[str, tuple[str, str, Any]]]:
    for section in msgspec.structs.fields(Config):
        for field in msgspec.structs.fields(section.type):
            yield f"{section.name}.{field.name}", (section.name, field.name, field.type)


KEYS: dict[str, tuple[str, str, Any]] = dict(_keys())
"""Every setting: its section, its name there, its type."""


def variable(key: str) -> str:
    """The environment variable of a setting."""
    return f"GATEWAY_{key.upper().replace('.', '_')}"


_VARIABLES = {variable(key): key for key in KEYS}
_VARIABLE_PREFIXES = tuple({f"GATEWAY_{section.upper()}_" for section, _, _ in KEYS.values()})


def load(file: Path, environ: Mapping[str, str], flags: Mapping[str, object]) -> Loaded:
    """Read all layers; a file that is not there sets nothing. Raises ConfigError."""
    layers = (
        (_from_file(file), str(file)),
        (_from_environment(environ), ""),
        ({key: value for key, value in flags.items() if value is not None}, "flag"),
    )
    sections: dict[str, dict[str, object]] = {}
    sources: dict[str, str] = {}
    for values, source in layers:
        for key, value in values.items():
            where = source or variable(key)
            section, name, kind = _known(key, where)
            sections.setdefault(section, {})[name] = _converted(
                value, kind, f"{where}: {key}", text=not source
            )
            sources[key] = where
    config = msgspec.convert(sections, Config)
    _check(config)
    return Loaded(config, sources)


def _known(key: str, where: str) -> tuple[str, str, Any]:
    if key not in KEYS:
        near = get_close_matches(key, KEYS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "list the settings with: gateway config show"
        raise ConfigError(f"{where}: there is no setting {key[:80]!r}", hint=hint)
    return KEYS[key]


def _from_file(file: Path) -> dict[str, object]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not TOML: {error}", hint="correct the line named above") from None
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    return dict(_flat(document))


def _flat(document: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for section, content in document.items():
        if isinstance(content, dict) and (content or section in Config.__struct_fields__):
            yield from ((f"{section}.{name}", value) for name, value in content.items())
        else:
            yield section, content


def _from_environment(environ: Mapping[str, str]) -> dict[str, object]:
    """Only names that begin like a section are ours: others (a Kubernetes service's, say) are left alone."""
    values: dict[str, object] = {}
    for name, value in environ.items():
        if name in _VARIABLES:
            values[_VARIABLES[name]] = value
        elif name.startswith(_VARIABLE_PREFIXES):
            near = get_close_matches(name, _VARIABLES, n=1)
            raise ConfigError(
                f"{name} is no setting", hint=f"did you mean {near[0]}?" if near else "unset it"
            )
    return values


def _converted(value: object, kind: Any, where: str, *, text: bool) -> object:
    mirrored = KEYS["mirror.nodes"][2]
    if text and isinstance(value, str) and kind in (KEYS["public.endpoints"][2], mirrored):
        words = [part.strip() for part in value.split(",") if part.strip()]
        value = value if kind == mirrored and value in MIRROR_WORDS else words
    try:
        return msgspec.convert(value, kind, strict=not text)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}", hint=f"it is {value!r} now") from None


def _check(config: Config) -> None:
    """What one type cannot say. Raises ConfigError."""
    if config.retry.cap_ms < config.retry.first_ms:
        raise ConfigError(
            "retry.cap_ms is below retry.first_ms", hint="raise the cap or lower the first wait"
        )
    if not (config.listen.allow_plain or is_loopback(config.listen.host)):
        raise ConfigError(
            f"listen.host {config.listen.host!r} would serve others without encryption",
            hint="listen on 127.0.0.1, or set listen.allow_plain (--allow-plain) inside a tailnet or tunnel",
        )
    for url in config.public.endpoints:
        _check_endpoint(url)
    if not isinstance(config.mirror.nodes, str):
        for name in config.mirror.nodes:
            _check_node(name)


def _check_node(name: str) -> None:
    try:
        node_id(name)
    except InvalidId as error:
        raise ConfigError(f"mirror.nodes: {error}", hint="write auto, all, none or names of nodes") from None


def _check_endpoint(url: str) -> None:
    """By the rule of those who will be told it."""
    try:
        check_gateway_url(url, allow_plain=True)
    except BadJoinCode as error:
        raise ConfigError(
            f"public.endpoints: {url[:80]!r}: {error}", hint="write http(s)://host:port"
        ) from None
