"""What is deployed but cannot run here is read by the tools that check it: manifests, units, scripts."""

import re
import shutil
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from gateway.cli.main import cli

DEPLOY = Path(__file__).parents[1] / "deploy"
MANIFESTS = [
    (path, number, document)
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for number, document in enumerate(yaml.safe_load_all(path.read_text()))
]


@pytest.mark.parametrize(
    "document", [document for *_, document in MANIFESTS], ids=[f"{path.name}-{n}" for path, n, _ in MANIFESTS]
)
def test_every_manifest_keeps_to_the_schema_of_kubernetes(document: dict[str, object]) -> None:
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_the_check_of_manifests_sees_a_misspelt_field() -> None:
    (job,) = [document for path, _, document in MANIFESTS if path.name == "report.yaml"]
    job["spec"]["shedule"] = job["spec"].pop("schedule")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)


def containers() -> list[dict[str, object]]:
    specs = []
    for *_, document in MANIFESTS:
        spec = document.get("spec", {})
        spec = spec.get("jobTemplate", document).get("spec", {})
        pod = spec.get("template", {}).get("spec", {}) if isinstance(spec, dict) else {}
        specs += pod.get("containers", [])
    return specs


def test_containers_may_do_little_and_run_a_command_that_is_there() -> None:
    from click.testing import CliRunner

    found = containers()
    assert len(found) == 2
    for container in found:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        program, command, *options = container["command"]
        assert program == "gateway"
        asked = CliRunner().invoke(cli, [command, "--help"]).output
        named = {option.partition("=")[0] for option in options if option.startswith("--")}
        assert {option for option in named if option not in asked} == set()


def test_units_run_commands_that_are_there() -> None:
    texts = [unit.read_text() for unit in sorted((DEPLOY / "systemd").glob("*.service"))]
    lines = [
        line
        for text in texts
        for line in re.findall(r"^Exec\w+=%h/.local/bin/gateway (.+)$", text, re.MULTILINE)
    ]
    assert {line.split()[0] for line in lines} == {"run", "status", "collect", "report"}
    for line in lines:
        command, *options = line.split()
        taken = {text for one in cli.commands[command].params for text in one.opts}
        assert {option for option in options if option.startswith("--")} <= taken, line


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_units_are_read_by_systemd(tmp_path: Path) -> None:
    for unit in sorted((DEPLOY / "systemd").glob("gateway-*")):
        text = unit.read_text().replace("%h/.local/bin/gateway", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    complaints = [line for line in checked.stderr.splitlines() if str(tmp_path) in line or "gateway-" in line]
    assert complaints == []


@pytest.mark.parametrize("script", sorted(DEPLOY.rglob("*.sh")), ids=lambda path: path.name)
def test_scripts_are_shell_and_say_how_they_are_used(script: Path) -> None:
    text = script.read_text()
    assert text.startswith("#!/bin/sh\n# ")
    assert "set -eu" in text
    assert subprocess.run(["sh", "-n", script], check=False, timeout=10).returncode == 0


def test_submit_says_how_it_is_used() -> None:
    done = subprocess.run(
        [DEPLOY / "spark" / "submit.sh"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "submit.sh LAKE OUT" in done.stderr
    assert "MASTER" in done.stderr
