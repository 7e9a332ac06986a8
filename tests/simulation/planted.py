"""Bugs that we plant, as data: each breaks one promise, in one or a few places of the source.

Only those that `make mutation` does not make: another order of durable writes, a missing fsync, another argument, a
bug outside its packages.

The text to replace must occur exactly once in its file: a change of such a line requires a change here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    name: str
    file: str  # below reconciler/
    changes: tuple[tuple[str, str], ...]  # text, and what stands there instead
    expected: str = "simulation"  # what is to catch it, and so is tried first


CREATE, LOST, CHANGE = "engine/create.py", "engine/recovery.py", "engine/change.py"
DELETES, RULES = "planning/ordering/deletes.py", "planning/deciding/rules.py"
UNCHANGED, CALLS, READER = "planning/deciding/fast_path.py", "planning/ordering/calls.py", "languages/yaml/reader.py"

RECEIPT = (
    '        await self._run.checkpoint("receipt", self._call, '
    "lambda: self._run.ports.journal.record_receipt(answer.intent.id))\n"
)
DELIVERING = "        try:\n            await delivery.deliver("
DELIVER = "            await self._deliver(answer)\n"
REMEMBER = "        await self._remember(answer)\n"
LEARN = "        run.memory.values.learn(call.address, self._kind, answer.body)\n"
CONCLUDE = "        await self._conclude(answer)\n"
INTEND = '        await run.checkpoint("intend", call, lambda: run.ports.journal.intend(intent))\n'
INTEND_LATE = (
    '        await self._run.checkpoint("intend", self._call, lambda: self._run.ports.journal.intend(answer.intent))\n'
)
MADE = "        if self._call.deliver:\n"
RETURN = "            return CallResult(Outcome.DONE, self._id(answer))\n"

BUGS: tuple[Bug, ...] = (
    # --- the engine: a create happens once ---------------------------------------------------------------------------
    Bug("the intent is written after the POST", CREATE, ((INTEND, ""), (MADE, INTEND_LATE + MADE))),
    Bug(
        "nobody waits until the intent is on disk",
        CREATE,
        ((INTEND, "        __import__('asyncio').ensure_future(run.ports.journal.intend(intent))\n"),),
    ),
    Bug("the disk is not synced", "store/files.py", (("synchronous=FULL", "synchronous=OFF"),), "store"),
    Bug(
        "no search after a lost answer",
        CREATE,
        (("        return await self._search(failure) if self._in_doubt else None\n", "        return None\n"),),
        "engine",  # what is made twice so, the next run clears away
    ),
    Bug(
        "an object that is not visible yet is taken for a deleted one",
        "engine/observe.py",
        (("            if remaining <= 0:\n", "            if remaining <= 60:\n"),),
    ),
    Bug(
        "a list is believed at once, however it lags",
        CREATE,
        (("self._run.ports.retries.lag if self._in_doubt else 0.0", "0.0"),),
    ),
    Bug(
        "a repeated create keeps its intent",
        CREATE,
        (("            if self._is_spent:\n                await self._intend()\n", ""),),
    ),
    Bug(
        "the search knows the latest intent only",
        CREATE,
        (("self._call, self._intents, cause)", "self._call, self._intents[-1:], cause)"),),
        "engine",
    ),
    Bug(
        "an object is concluded before it is bound",
        CREATE,
        (
            (
                LEARN,
                LEARN + CONCLUDE,
            ),
            (CONCLUDE + "\n    async def _conclude(", "\n    async def _conclude("),
        ),
    ),
    Bug("an old binding hides what an open intent made", LOST, (("known.id != found[0].locator", "False"),), "engine"),
    # --- the engine: one-time secrets --------------------------------------------------------------------------------
    Bug(
        "the receipt is written before the delivery",
        CREATE,
        ((DELIVERING, RECEIPT + DELIVERING),),
    ),
    Bug(
        "the create is concluded before its secret is delivered",
        CREATE,
        (
            (
                DELIVER + REMEMBER,
                "    "
                + REMEMBER
                + DELIVER
                + "            return CallResult(Outcome.DONE, self._id(answer))\n"
                + REMEMBER,
            ),
        ),
        "engine",
    ),
    Bug(
        "a credential whose delivery failed stays",
        "engine/delivery.py",
        (("        await revoke(run, call, path, because=str(why))\n", ""),),
        "engine",
    ),
    Bug(
        "a credential whose token was lost stays",
        CREATE,
        ((MADE, "        if self._call.deliver and not answer.found:\n"),),
    ),
    Bug(
        "pending is never cleared",
        "planning/ordering/calls.py",
        (
            (
                "            owner=_draft_record(decision),\n",
                "            owner=_draft_record(decision, pending=True),\n",
            ),
        ),
    ),
    # --- the engine: everything else ---------------------------------------------------------------------------------
    Bug(
        "a PATCH of what is gone counts as done",
        CHANGE,
        (
            (
                "    except Gone as failure:\n        raise Gone(",
                "    except Gone as failure:\n        return {}\n        raise Gone(",
            ),
        ),
        "engine",
    ),
    Bug(
        "a list confirms the owner for a minute",
        "engine/ownership.py",
        (("FRESH = 5.0 ", "FRESH = 60.0 "),),
        "engine",
    ),
    Bug(
        "calls do not wait for what they need",
        "engine/schedule.py",
        (("State.BLOCKED if needs else State.READY", "State.READY"),),
    ),
    Bug(
        "a failed call counts as a need that is met",
        "engine/schedule.py",
        (("_SUCCESS = (Outcome.DONE, ", "_SUCCESS = (Outcome.FAILED, Outcome.DONE, "),),
    ),
    Bug(
        "a list that was cut short counts as whole",
        "engine/observe.py",
        (
            (
                "return Listing(tuple(found.values()), complete=not why, why=why)",
                "return Listing(tuple(found.values()))",
            ),
        ),
    ),
    Bug(
        "the record does not say what it replaces", "engine/requests.py", (("        replaces=draft.replaces,\n", ""),)
    ),
    # --- planning ----------------------------------------------------------------------------------------------------
    Bug(
        "what an invalid manifest may declare is deleted",
        "planning/deciding/orphans.py",
        (("        if index.manifest.unread is not None:\n", "        if False:\n"),),
    ),
    Bug("adopting needs no approval", RULES, (("needs_approval=not is_approved", "needs_approval=False"),)),
    Bug(
        "what has been replaced is taken for the resource",
        "planning/matching/ownership.py",
        (
            (
                "        heads = _drop_replaced(lives)\n        if",
                "        heads = [live for live in lives if live not in _drop_replaced(lives)]\n        if",
            ),
        ),
        "planning",
    ),
    Bug(
        "what has been replaced is given to another",
        "planning/matching/index.py",
        (
            (
                "for address, live in self.superseded}\n",
                "for address, live in ()}\n",
            ),
        ),
        "planning",
    ),
    # --- what most resources are, at a glance ------------------------------------------------------------------------
    Bug(
        "a glance overlooks what responses never show",
        UNCHANGED,
        (("if declared is None and is_hidden and not record.holds(field.name):", "if is_hidden:"),),
        "planning",
    ),
    Bug(
        "a glance leaves what it found to others",
        UNCHANGED,
        (
            (
                "    return live if assignments.assign(live, declaration.address) == declaration.address else None\n",
                "    return live\n",
            ),
        ),
    ),
    Bug(
        "a unique key is taken before it is free",
        RULES,
        (
            (
                "Order.CREATE_FIRST if set(held).isdisjoint(taken) else Order.DELETE_FIRST",
                "Order.CREATE_FIRST",
            ),
        ),
        "planning",
    ),
    Bug(
        "an endpoint takes a host before the edge lets go of it",
        "planning/deciding/exclusive_keys.py",
        (("find_shared_keys: (find_exclusive_keys,)", "find_shared_keys: ()"),),
        "planning",
    ),
    Bug(
        "a binding does not say what it replaces",
        CREATE,
        (("None if has_record else replaces", "None"),),
        "engine",
    ),
    Bug(
        "the guard does not ask for protection",
        "planning/guards.py",
        (
            (
                "    return decision.live_protected or decision.protect or not options",
                "    return False and not options",
            ),
        ),
    ),
    Bug(
        "what is referred to is deleted first",
        DELETES,
        (("Wait(delete, graph.deleters[referrer])", "Wait(graph.deleters[referrer], delete)"),),
    ),
    Bug(
        "the old one goes before its referrers are re-pointed",
        DELETES,
        (("            yield from (Wait(delete, setter) for setter", "            (Wait(delete, setter) for setter"),),
    ),
    Bug(
        "what is referred to need not be there first",
        "planning/ordering/creates.py",
        (("                yield from (Wait(call, graph.creators", "                (Wait(call, graph.creators"),),
    ),
    Bug(
        "a hostport is taken before it is let go",
        "planning/ordering/handover.py",
        (("            yield from (Wait(call, giver, key)", "            (Wait(call, giver, key)"),),
    ),
    Bug(
        "an orphan is never deleted",
        "planning/planner.py",
        (("self.undeclared.append(", "str("),),
    ),
    # --- what the platform chooses ------------------------------------------------------------------------------------
    Bug(
        "a choice is lost when something beside it changes",
        CALLS,
        (("            value = keep_live_defaults(", "            value or keep_live_defaults("),),
        "planning",
    ),
    Bug(
        "a line that goes gives nothing back",
        "planning/comparing/compare.py",
        (("reverted = list(find_reverted_defaults(", "reverted = 0 * list(find_reverted_defaults("),),
        "planning",
    ),
    Bug(
        "the short way does not see that a line went",
        UNCHANGED,
        (
            (
                "server_defaults(kind) and any(find_reverted_defaults(kind, spec, owner.applied))",
                "False",
            ),
        ),
        "planning",
    ),
    Bug(
        "what nobody can see is forgotten before it is removed",
        CALLS,
        (("    if InputOnly in field:\n        return True\n", ""),),
        "planning",
    ),
    # --- YAML ---------------------------------------------------------------------------------------------------------
    Bug(
        "a duplicate key replaces the first one",
        READER,
        (
            (
                "                    if key in container:\n"
                "                        key = self._duplicate(event, container, key)\n",
                "",
            ),
        ),
        "languages",
    ),
    Bug(
        "the tag of a scalar is ignored",
        READER,
        (
            (
                "                if event.tag is not None or event.anchor is not None:\n",
                "                if event.anchor is not None:\n",
            ),
        ),
        "languages",
    ),
    Bug(
        "a quoted text has the value of an equal unquoted one",
        READER,
        (("                    if event.style:\n", "                    if event.style and text not in meanings:\n"),),
        "languages",
    ),
    Bug(
        "a number can be a key",
        READER,
        (("        if self._dialect.merges:\n", '        if self._dialect.merges or value != "<<":\n'),),
        "languages",
    ),
)

SAMPLE = (
    "the intent is written after the POST",
    "a repeated create keeps its intent",
    "a credential whose token was lost stays",
    "a list that was cut short counts as whole",
    "the old one goes before its referrers are re-pointed",
)
"""Planted in every run of the tests, so that the detector itself is tested."""
