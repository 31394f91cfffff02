"""The calls of the client that `client.py` does not make: files, signals and the feed. `python.test.ts` runs it."""
import asyncio
import os

from rivulet import Client


async def main():
    async with Client(os.environ["RIVULET_URL"]) as client:
        file = await client.upload("what ä holds".encode(), "a name ä.txt", "text/plain")
        assert (file["name"], file["mimeType"], file["size"]) == ("a name ä.txt", "text/plain", 13), file
        assert (await client.download(file["id"])).decode() == "what ä holds"

        seen = []

        async def follow(after, until):
            async for entry in client.feed(after, agent="py-signal"):
                seen.append((entry.type, entry.data["task"]))
                if entry.type == until:
                    return entry.cursor

        task = (await client.create("py-signal", "hello"))["task"]["id"]
        assert (await client.signal(task, "ready", {"n": 1}))["status"] in ("delivered", "kept")
        assert (await client.wait(task)).text == "got {'n': 1}"
        # The rest of the feed begins behind the place where a reader left it.
        await follow(await follow("0-0", "turn.started"), "turn.finished")
        assert {found for _, found in seen} == {task}, seen
        kinds = [kind for kind, _ in seen]
        assert (kinds[0], kinds[-1]) == ("task.created", "turn.finished"), kinds


asyncio.run(main())
