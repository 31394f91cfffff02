"""The agents that `rivulet conform` asks for, in Python."""
import asyncio
import uuid

import rivulet
from rivulet import RivuletError, agent


async def pause(turn):
    await asyncio.sleep((turn.params or {}).get("pauseMs", 0) / 1000)


@agent("conform-echo")
async def echo(turn):
    async with turn.message() as message:
        for word in turn.text.split(" "):
            await message.append(word + " ")
            await pause(turn)


@agent("conform-step")
async def step(turn):
    result = await turn.step("draw", lambda: str(uuid.uuid4()))
    await turn.send(result)
    await pause(turn)
    if turn.attempt <= (turn.params or {}).get("failures", 0):
        raise RivuletError("agent_error", "this attempt is to fail")


@agent("conform-ask")
async def ask(turn):
    await turn.send("before")
    answer = await turn.ask("go", "May I?")
    await turn.send(answer.action)


rivulet.run(echo, step, ask)
