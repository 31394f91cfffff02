"""The agents that `rivulet conform` asks for, but this worker runs each step again, leaves at once, and repeats itself after a cut."""
import asyncio
import os
import signal
import uuid
from urllib.parse import urlsplit

import rivulet
from rivulet import RivuletError, agent


was_cut = asyncio.Event()


async def watch_connection():
    """Connects without a request: the server replies 408 to that in time, so only a cut ends it without a byte."""
    api = urlsplit(os.environ["RIVULET_URL"])
    while not was_cut.is_set():
        try:
            reader, _ = await asyncio.open_connection(api.hostname, api.port)
            if not await reader.read():
                was_cut.set()
        except ConnectionError:
            was_cut.set()


async def pause(turn):
    await asyncio.sleep((turn.params or {}).get("pauseMs", 0) / 1000)


@agent("conform-echo")
async def echo(turn):
    async with turn.message() as message:
        for word in turn.text.split(" "):
            await message.append(word + " ")
            await pause(turn)
        if was_cut.is_set():
            await message.append("again ")


@agent("conform-step")
async def step(turn):
    result = await turn.step(f"draw {turn.attempt}", lambda: str(uuid.uuid4()))
    await turn.send(result)
    await pause(turn)
    if turn.attempt <= (turn.params or {}).get("failures", 0):
        raise RivuletError("agent_error", "this attempt is to fail")


@agent("conform-ask")
async def ask(turn):
    await turn.send("before")
    answer = await turn.ask("go", "May I?")
    await turn.send(answer.action)


def leave():
    os._exit(3)


async def main():
    worker = rivulet.Worker([echo, step, ask])
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave)
    watching = asyncio.create_task(watch_connection())
    await worker.run()
    watching.cancel()


asyncio.run(main())
