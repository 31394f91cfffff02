"""Reads a task with the client in Python: whole, and again from each of its cursors."""
import asyncio
import json
import os
import sys

from rivulet import Client, text_of


def cursors_of(events):
    """Of the events that are in the log."""
    return [event.cursor for event in events if event.type not in ("snapshot", "caught_up", "end")]


async def main(agent):
    async with Client(os.environ["RIVULET_URL"]) as client:
        created = await client.create(agent, "hello")
        task = created["task"]["id"]
        whole = [event async for event in client.stream(task, "0-0")]
        result = await client.wait(task)
        cursors = cursors_of(whole)
        resumed = []
        for cursor in cursors[:-1]:
            rest = [event async for event in client.stream(task, cursor)]
            resumed.append(cursors_of(rest))
        types = [event.type for event in whole]
        print(json.dumps({"task": task, "text": result.text, "streamed": text_of(whole), "cursors": cursors, "resumed": resumed, "types": types}))


asyncio.run(main(sys.argv[1]))
