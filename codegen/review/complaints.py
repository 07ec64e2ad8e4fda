"""The catalogue of complaints about change records and accepted forms."""

from __future__ import annotations

from codegen.rules.complaint import Complaint

COMPLAINTS = (
    Complaint(
        "E901",
        "A change record is named by its number and title.",
        wrong="spec/changes/7-Summaries.yaml",
        right="spec/changes/0007-bounded-summaries.yaml",
    ),
    Complaint(
        "E902",
        "The number of a change record is used once, over all systems.",
        wrong="spec/changes/0007-bounded-summaries.yaml\nspec/changes/0007-more-slots.yaml",
        right="spec/changes/0007-bounded-summaries.yaml\nspec/changes/0008-more-slots.yaml",
    ),
    Complaint(
        "E903",
        "A change record names its schema on the first line.",
        wrong="system: locker",
        right="# yaml-language-server: $schema=../schema/change.schema.json\nsystem: locker",
    ),
    Complaint(
        "E904",
        "A change record is about a system that exists.",
        wrong="system: taskqeue",
        right="system: locker",
    ),
    Complaint(
        "E905",
        "While a design is frozen every change record names its blocker.",
        wrong="covers: […]",
        right="blocker: {description: …, why_design_fails: …, scope: …, impact_on_task: …}\ncovers: […]",
    ),
    Complaint(
        "E906",
        "A pending change record names exactly what it covers: ids of differences that there are.",
        wrong="covers: [variable.default MAX_OUTPUT]",
        right="covers: [variable.default MAX_OUTPUT_BYTES]",
    ),
    Complaint(
        "E907",
        "A difference is covered by one change record.",
        wrong="# 0007\ncovers: [variable.default WORKER_ID]\n# 0008\ncovers: [variable.default WORKER_ID]",
        right="# 0007\ncovers: [variable.default WORKER_ID]\n# 0008\ncovers: []",
    ),
    Complaint(
        "E908",
        "A question is resolved by one change record.",
        wrong="# 0007\nresolves: [CH-54]\n# 0008\nresolves: [CH-54]",
        right="# 0007\nresolves: [CH-54]\n# 0008\nresolves: [CH-44]",
    ),
    Complaint(
        "E909",
        "The accepted form of a system can be read; only `python -m codegen review --accept` writes it.",
        wrong='{"system": {}, …}',
        right='{"system": {"name": "locker", …}, …, "records": ["0001-…"]}',
    ),
    Complaint(
        "E910",
        "A change record that was accepted is kept for good.",
        wrong='"records": ["0001-the-design-as-frozen"]  # and no such file',
        right='"records": ["0001-the-design-as-frozen"]  # spec/changes/0001-the-design-as-frozen.yaml',
    ),
)
