"""The page docs/doctor.md, made from the checks and from what is known of parts and versions."""

from __future__ import annotations

from . import examine, known

HEAD = """# Doctor

`bin/sparkring doctor -i inventories/<ring>/hosts.yml` says what is wrong with a ring in one sentence a finding, with
one fix. It needs ssh and nothing else: no preparation, no layout, no bindings, no plan; where these are there, it looks
at them too. It reads only, and its only packets are IPv6 echo requests to all nodes on the ring's own cables. Rings
that other tools built, or somebody by hand, are examined the same way.

A host that cannot be reached, has no Python or gives no root is a finding of its own; the others are examined all the
same. Without root some parts of a host are not read; the finding names them, and the checks that need them are not made
on that host.

Only a `fail` ends the command with exit code 1; a `warn` or `info` does not. When no host could be examined it ends
with 2.

| Variable | Meaning |
|---|---|
| `sparkring_doctor_only` | ids of the checks to make, or the part before a dot for all of that kind |
| `sparkring_doctor_silence` | ids whose findings are no faults here, each with the reason, which is printed |
| `sparkring_doctor_report` | files to write; `.json` (schema `sparkring.doctor/1`), `.xml` (JUnit), `.md` or `.txt` |

    bin/sparkring doctor -i hosts.yml -e sparkring_doctor_only=link,addr.overlap -e sparkring_doctor_report=ring.md
    bin/sparkring doctor -i hosts.yml -e '{"sparkring_doctor_silence": {"fleet.kernel_skew": "On trial on spark-b."}}'

What it cannot see: how fast a cable is (`verify` measures), and what happens under load. The checks are proved on
made-up rings with one thing wrong each (evidence: `unit`).

## Checks

| Check | Finding is | Looks at | Means |
|---|---|---|---|
"""
CABLES = """
## Cables seen at 200 Gb/s

Others may work as well; what is not listed gives `cabling.unlisted_part`.

| Part | Vendor | Source | Date |
|---|---|---|---|
"""
BAD = """
## Known bad

A version is listed only where it is reported to fail, and not another. The list is short because few reports say so:
differences between hosts (`fleet.*`) find more.

| What | Says | Source | Date |
|---|---|---|---|
"""


def text() -> str:
    """The whole page."""
    checks = examine.checks()
    cables = known.CABLES.items()
    return "".join(
        [
            HEAD,
            *(f"| `{one.id}` | {one.severity} | {', '.join(one.looks_at) or '-'} | {one.says} |\n" for one in checks),
            CABLES,
            *(f"| {part} | {cable['vendor']} | {cable['source']} | {cable['date']} |\n" for part, cable in cables),
            BAD,
            *(f"| {one.what} `{one.match}` | {one.says} | {one.source} | {one.date} |\n" for one in known.BAD),
        ]
    )
