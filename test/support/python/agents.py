"""Agents of the tests, in Python. Lines on stdout say what a test wants to see from inside."""
import asyncio
import os
import sys

import rivulet
from rivulet import RivuletError, agent, custom, delta, done, full, start, tool_request

WORDS = ["one ", "two ", "three 😀"]
USAGE = {"inputTokens": 2, "outputTokens": 3}


def say(line):
    print(line, flush=True)


async def updates():
    yield delta(0, WORDS[0])
    for word in WORDS[1:]:
        yield delta(0, word)
    yield done(0, usage=USAGE, response={"id": "r", "model": "m"})
    yield start(1, tool_request("c", "look", {}))
    yield delta(1, {"type": "tool_request", "text": '{"a":1}'})
    yield done(1)
    yield custom("note", {"n": 1})
    yield full(2, "whole")


@agent("py-generator")
async def generator(turn):
    async for update in updates():
        yield update


@agent("py-auto")
async def auto(turn):
    sent = await turn.auto_send(updates())
    say(f"sent {sent.text} {sent.tool_calls[0]['arguments']}")


@agent("py-manual")
async def manual(turn):
    async with turn.message() as message:
        for word in WORDS:
            await message.append(word)
        await message.finish(usage=USAGE, response={"id": "r", "model": "m"})
    async with turn.message(tool_request("c", "look", {})) as message:
        await message.append('{"a":1}')
    await turn.custom("note", {"n": 1})
    await turn.send("whole")


@agent("py-retry")
async def retry(turn):
    async def draft():
        say("draft")
        await turn.send("a draft")
        await turn.usage({"inputTokens": 1})
        return {"words": 2}

    result = await turn.step("draft", draft)
    await turn.state.set({"drafts": 1})
    if turn.attempt == 1:
        raise RivuletError("agent_error", "the first attempt fails")
    await turn.send(f"{result['words']} words, attempt {turn.attempt}")


@agent("py-wait")
async def wait(turn):
    say("asking")
    await turn.send("before")
    await turn.state.patch({"asked": True})
    answer = await turn.ask("go", "May I?")
    await turn.sleep("nap", 0.1)
    await turn.send(f"{answer.action} {len(await turn.history())}")


@agent("py-beside")
async def beside(turn):
    answered = asyncio.Event()

    async def question():
        answer = await turn.ask("go", "May I?")
        answered.set()
        return answer.action

    _, action = await asyncio.gather(turn.step("long", answered.wait), question())
    await turn.send(action)


@agent("py-parent")
async def parent(turn):
    child = await turn.spawn("one", "py-generator", "go")
    await turn.send(f"{child.status}: {child.text}")


@agent("py-slow")
async def slow(turn):
    try:
        async with turn.message() as message:
            await message.append("begun ")
            say(f"begun {turn.attempt}")
            while not os.path.exists(turn.params["until"]):
                await asyncio.sleep(0.02)
            await message.append("done")
    except asyncio.CancelledError:
        say("canceled")
        raise


@agent("py-signal")
async def signaled(turn):
    await turn.send(f"got {await turn.wait_for('ready')}")


@agent("py-take")
async def take(turn):
    await turn.send("begun")
    say(f"begun {turn.attempt}")
    attempts = 0
    while True:
        attempts += 1
        joined = await turn.take_inputs(f"inputs {attempts}")
        if joined:
            break
        await asyncio.sleep(0.02)
    if turn.attempt == 1:
        raise RivuletError("agent_error", "the first attempt fails")
    await turn.send(f"joined {joined[0]['text']}")


@agent("py-files")
async def files(turn):
    file = await turn.files.store(b"bytes", "ä.txt", "text/plain")
    await turn.send(f"{file['name']} {(await turn.files.read(file['id'])).decode()} " + turn.secrets.get("TOKEN", "none"))


@agent("py-store")
async def store(turn):
    visits = await turn.store.get("customer", "visits")
    await turn.store.put("customer", "visits", (visits["value"] if visits else 0) + 1, version=visits["version"] if visits else 0)
    page = await turn.store.list("customer", prefix="vis", limit=1)
    await turn.send(f"{page['data'][0]['value']} {page['nextCursor']} {await turn.store.get('tenant', 'no such key')}")


rivulet.run(generator, auto, manual, retry, wait, beside, parent, slow, signaled, take, files, store, drain_seconds=float(sys.argv[1]))
