"""Promises of the package for Python that need no platform. `python.test.ts` runs them."""
import asyncio
import contextlib
import http.server
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import uuid
from unittest import mock

from rivulet import Client, RivuletError, agent, delta, done, test_turn, text, verify_webhook
from rivulet import writer as writer_module
from rivulet.agent import RunningTurn
from rivulet.testing import MemoryCalls, MemoryStore, TestTurn
from rivulet.worker import Worker


def claim_of(name, **more):
    return {
        **{"turn": "turn", "claim": str(uuid.uuid4()), "epoch": 1, "attempt": 1, "agent": name, "number": 1, "kept": [], "steps": []},
        **{"task": {"id": "task", "agent": name}, "inputs": [], "timeLeftMs": 600_000, **more},
    }


async def until(condition):
    while not condition():
        await asyncio.sleep(0.005)


class RecordingCalls(MemoryCalls):
    """The server of one turn; keeps the calls, and the waits that a test answers later."""

    def __init__(self):
        super().__init__(TestTurn(), {}, [], MemoryStore({}))
        self.posts = []
        self.answers = {}
        self.refused = None
        self.inputs = []
        self.results = []
        self.claimed = []

    def of(self, call):
        return [body for name, body in self.posts if name == call]

    async def post(self, call, body):
        self.posts.append((call, body))
        if call == self.refused:
            raise RivuletError("forbidden", "The key is not allowed", 403)
        if call == "hello":
            return {"heartbeatMs": 10, "maxWaitMs": 10}
        if call == "heartbeat":
            await asyncio.sleep(0.01)
            return {"lost": [], "canceled": [], "answered": []}
        if call == "claim":
            if self.claimed:
                return {"turns": self.claimed.pop(0)(body["claimId"])}
            await asyncio.Event().wait()
        if call == "append" and self.results:
            return {"results": [self.results.pop(0)]}
        if call == "take":
            first, last = body["after"], body.get("upTo", 99)
            return {"joined": [one for one in self.inputs if first < one["turn"] <= last]}
        return await super().post(call, body)

    async def get(self, path, turn):
        return {"waits": list(self.answers.values())} if path == "waits?" else await super().get(path, turn)


class Server(http.server.ThreadingHTTPServer):
    """Plays the API: streams stay silent, and the other paths get the replies of a test."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, replies=()):
        self.replies = list(replies)
        self.paths = []
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def __exit__(self, *_):
        self.over.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.paths.append(self.path)
        if self.path.endswith("/events"):
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b'event: caught_up\ndata: {}\n\n')
            self.wfile.flush()
            self.server.over.wait()
            return
        status, headers, is_closed = self.server.replies.pop(0) if self.server.replies else (200, {}, False)
        self.send_response(status)
        for name, value in {"content-length": "2", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"{}")
        # The client is not warned of it.
        self.close_connection = is_closed

    def log_message(self, *_):
        pass


class Turns(unittest.IsolatedAsyncioTestCase):
    async def test_an_answer_answers_one_question_alone(self):
        @agent("twice")
        async def twice(turn):
            await turn.ask("go", "Delete a?")
            await turn.ask("go", "Delete b?")

        turn = await test_turn(twice, replies={"go": {"action": "accept"}})
        self.assertEqual((turn.status, turn.error["code"]), ("failed", "bad_call"))

    async def test_a_question_in_an_open_message_fails_at_once(self):
        @agent("open")
        async def open_message(turn):
            async with turn.message():
                await turn.ask("go", "May I?")

        turn = await test_turn(open_message)
        self.assertEqual((turn.status, turn.error["code"]), ("failed", "bad_call"))

    async def test_a_question_beside_a_running_step_gets_its_answer(self):
        gate = asyncio.Event()
        got = []

        @agent("beside")
        async def beside(turn):
            async def question():
                got.append((await turn.ask("go", "May I?")).action)
                gate.set()

            await asyncio.gather(turn.step("long", gate.wait), question())

        calls = RecordingCalls()
        running = RunningTurn(beside, claim_of("beside"), calls)
        ran = asyncio.create_task(running.run())
        await until(lambda: running.turn._waits.waiting == 1)
        calls.answers["go"] = {"name": "go", "status": "answered", "answer": {"action": "accept"}}
        running.turn._waits.answered()
        self.assertEqual(await ran, "completed")
        self.assertEqual(got, ["accept"])

    async def test_a_question_that_is_given_up_leaves_the_others_and_does_not_park_the_turn(self):
        gate = asyncio.Event()
        ended = []

        @agent("impatient")
        async def impatient(turn):
            async def question(name):
                await turn.ask(name, "May I?")
                ended.append(name)

            given_up, kept = asyncio.create_task(question("a")), asyncio.create_task(question("b"))
            step = asyncio.create_task(turn.step("long", gate.wait))
            await until(lambda: turn._waits.waiting == 2)
            given_up.cancel()
            await asyncio.wait({given_up})
            calls.answers["b"] = {"name": "b", "status": "answered", "answer": {"action": "accept"}}
            turn._waits.answered()
            await kept
            gate.set()
            await step
            await asyncio.sleep(0.05)

        calls = RecordingCalls()
        running = RunningTurn(impatient, claim_of("impatient"), calls)
        self.assertEqual((await running.run(), ended, calls.of("park")), ("completed", ["b"], []))

    async def test_a_turn_parks_when_the_last_of_its_questions_is_open(self):
        gate = asyncio.Event()

        class GatedCalls(RecordingCalls):
            async def post(self, call, body):
                if call == "ask" and body["waits"][0]["name"] == "late":
                    await gate.wait()
                return await super().post(call, body)

        @agent("both")
        async def both(turn):
            await asyncio.gather(turn.ask("early", "May I?"), turn.ask("late", "May I?"))

        calls = GatedCalls()
        running = RunningTurn(both, claim_of("both"), calls)
        ran = asyncio.create_task(running.run())
        await until(lambda: running.turn._waits.waiting == 1)
        self.assertEqual(calls.of("park"), [])
        gate.set()
        self.assertEqual(await ran, "parked")
        self.assertEqual((len(calls.of("ask")), len(calls.of("park"))), (2, 1))

    async def test_parallel_steps_keep_their_own_messages(self):
        @agent("parallel")
        async def parallel(turn):
            def said(word):
                async def updates():
                    for index in range(2):
                        yield delta(index, word)
                        yield done(index)

                return turn.step(word, lambda: send(updates()))

            async def send(updates):
                await turn.auto_send(updates)

            await asyncio.gather(said("a"), said("b"), said("c"))

        calls = RecordingCalls()
        with mock.patch.object(writer_module, "max_unsent", 0):
            self.assertEqual(await RunningTurn(parallel, claim_of("parallel"), calls).run(), "completed")
        texts = {body["name"]: [message["content"]["text"] for message in body["messages"]] for body in calls.of("step")}
        self.assertEqual(texts, {"a": ["a", "a"], "b": ["b", "b"], "c": ["c", "c"]})

    async def test_an_append_that_is_unavailable_is_sent_again(self):
        @agent("plain")
        async def plain(turn):
            await turn.send("hello")

        calls = RecordingCalls()
        calls.results = [{"result": "unavailable", "next": 1}] * 2
        self.assertEqual(await RunningTurn(plain, claim_of("plain"), calls).run(), "completed")
        appends = calls.of("append")
        self.assertEqual(len(appends), 3)
        self.assertEqual([body["appends"][0] for body in appends], [appends[0]["appends"][0]] * 3)

    async def test_a_long_output_is_sent_in_several_calls(self):
        whole = "ä" * 300_000

        @agent("long")
        async def long(turn):
            async with turn.message() as message:
                await message.append(whole)
            for _ in range(400):
                await turn.send("x")

        calls = RecordingCalls()
        self.assertEqual(await RunningTurn(long, claim_of("long"), calls).run(), "completed")
        appends = [body["appends"][0] for body in calls.of("append")]
        for append in appends:
            self.assertLessEqual(len(json.dumps(append)), 1_100_000)
            self.assertLessEqual(len(append["updates"]), 150)
        updates = [update for append in appends for update in append["updates"]]
        self.assertEqual("".join(update["delta"]["text"] for update in updates if update["type"] == "delta"), whole)
        self.assertEqual(len(updates), 402 + 5)

    async def test_inputs_join_the_turn_where_they_were_taken_before(self):
        taken = []

        @agent("taking")
        async def taking(turn):
            taken.append([[content["text"] for content in await turn.take_inputs(name)] for name in ("first", "second", None)])

        calls = RecordingCalls()
        calls.inputs = [{"turn": 2, "inputs": [text("two")]}, {"turn": 3, "inputs": [text("three")]}]
        steps = [{"name": "first", "result": []}, {"name": "second", "result": [2]}]
        self.assertEqual(await RunningTurn(taking, claim_of("taking", steps=steps), calls).run(), "completed")
        self.assertEqual(taken, [[[], ["two"], ["three"]]])
        joins = [update for body in calls.of("append") for update in body["appends"][0]["updates"]]
        self.assertEqual([(one["type"], one["turn"]) for one in joins], [("join", 2), ("join", 3)])

    async def test_inputs_cannot_be_taken_in_a_step(self):
        @agent("within")
        async def within(turn):
            await turn.step("work", turn.take_inputs)

        turn = await test_turn(within)
        self.assertEqual((turn.status, turn.error["code"]), ("failed", "bad_call"))

    async def test_a_turn_counts_down_its_budget_by_itself(self):
        prices = {"m": {"input": 1, "output": 10, "cachedInput": 0.5}}

        @agent("counting")
        async def counting(turn):
            await turn.step("one", lambda: turn.usage({"inputTokens": 1_000_000, "cacheReadTokens": 500_000}, "m-2026-01-01"))
            await turn.step("two", lambda: None)
            async with turn.message() as message:
                await message.finish(usage={"outputTokens": 30_000}, response={"model": "m"})
            await turn.step("three", lambda: None)

        for budget, stored in (({"usd": 1.06, "prices": prices}, 3), ({"usd": 1.04, "prices": prices}, 2), ({"tokens": 1_000_000}, 1), ({}, 3)):
            calls = RecordingCalls()
            end = await RunningTurn(counting, claim_of("counting", budget=budget), calls).run()
            self.assertEqual((budget, len(calls.of("step")), end), (budget, stored, "completed" if stored == 3 else "failed"))

    async def test_a_replayed_step_counts_the_usage_of_the_steps_in_it(self):
        @agent("nested")
        async def nested(turn):
            async def middle():
                await turn.step("inner", lambda: turn.usage({"totalTokens": 1_000}))

            await turn.step("outer", middle)

        stored: list = []
        for _ in ("none is stored", "the inner one is stored", "both are stored"):
            calls = RecordingCalls()
            await RunningTurn(nested, claim_of("nested", steps=stored), calls).run()
            self.assertEqual(calls.of("finish")[0].get("usage"), {"totalTokens": 1_000})
            stored = [*stored, *[body for body in calls.of("step")][:1]]

    async def test_a_used_budget_ends_the_turn_before_its_next_step(self):
        @agent("costly")
        async def costly(turn):
            await turn.step("one", lambda: None)

        calls = RecordingCalls()
        self.assertEqual(await RunningTurn(costly, claim_of("costly", isOverBudget=True), calls).run(), "failed")
        self.assertEqual(calls.of("finish")[0]["error"]["code"], "budget_exceeded")
        self.assertEqual(calls.of("step"), [])


class Workers(unittest.IsolatedAsyncioTestCase):
    async def test_a_turn_that_is_claimed_again_begins_after_its_old_run_and_keeps_its_lease(self):
        gate = asyncio.Event()
        begun = []

        @agent("stubborn")
        async def stubborn(turn):
            begun.append(turn.number)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await gate.wait()

        worker = Worker([stubborn])
        worker._calls = RecordingCalls()
        first, second = claim_of("stubborn", number=1), claim_of("stubborn", number=2)
        worker._start(first)
        await until(lambda: begun == [1])
        worker._start(second)
        beating = asyncio.create_task(worker._beat(10))
        await until(lambda: worker._calls.of("heartbeat"))
        self.assertEqual([turn["claim"] for turn in worker._calls.of("heartbeat")[-1]["turns"]], [second["claim"]])
        self.assertEqual(begun, [1])
        gate.set()
        await until(lambda: begun == [1, 2])
        self.assertEqual(list(worker._running), [("turn", second["claim"])])
        await worker._release()
        self.assertEqual(worker._calls.of("release")[0]["claim"], second["claim"])
        beating.cancel()

    async def test_two_agents_of_one_name_are_refused(self):
        def desk():
            return agent("desk")(lambda turn: None)

        one = desk()
        Worker([one, one])
        with self.assertRaisesRegex(RivuletError, "Two agents are named desk"):
            Worker([one, desk()])

    async def test_an_api_on_another_machine_needs_tls(self):
        one = agent("desk")(lambda turn: None)

        def refuses(url, **variables):
            with mock.patch.dict("os.environ", {"RIVULET_URL": url, "ALLOW_PLAINTEXT": "", **variables}):
                try:
                    Worker([one])
                except RivuletError as error:
                    return "without TLS" in error.message
                return False

        for host in ("api:4000", "10.0.0.1", "localhost.example", "127.0.0.1.example", "[::ffff:127.0.0.1]", "a@evil", "127.0.0.1@evil", "0.0.0.0"):
            self.assertTrue(refuses(f"http://{host}"), host)
            self.assertFalse(refuses(f"https://{host}"), host)
            self.assertFalse(refuses(f"http://{host}", ALLOW_PLAINTEXT="on"), host)
        for host in ("", "http://localhost:1", "http://127.0.0.1", "http://127.1.2.3:4000/", "http://[::1]:4000", "http://evil@127.0.0.1"):
            self.assertFalse(refuses(host), host)
        Worker([one], url="http://10.0.0.1")

    async def test_the_command_does_not_start_with_an_api_on_another_machine_without_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "desk.py"
            file.write_text("from rivulet import agent\n\n@agent('desk')\nasync def desk(turn):\n    pass\n")
            environment = {**os.environ, "RIVULET_URL": "http://10.0.0.1", "ALLOW_PLAINTEXT": "off"}
            ended = await asyncio.to_thread(
                subprocess.run, [sys.executable, "-m", "rivulet", str(file)], env=environment, capture_output=True, text=True
            )
        self.assertEqual(ended.returncode, 78, ended.stderr)
        self.assertRegex(ended.stderr, "^RIVULET_URL leads to another machine")

    async def test_each_claim_has_an_id_that_its_turns_share(self):
        begun = []

        @agent("shared")
        async def shared(turn):
            begun.append(turn.task["id"])

        def turns_of(claim_id):
            return [claim_of("shared", turn=f"turn {claim_id} {n}", claim=claim_id, task={"id": n}) for n in (1, 2)]

        worker = Worker([shared])
        worker._calls = RecordingCalls()
        worker._calls.claimed = [turns_of, turns_of]
        claiming = asyncio.create_task(worker._claim(10))
        await until(lambda: len(worker._calls.of("finish")) == 4)
        self.assertEqual(sorted(begun), [1, 1, 2, 2])
        ids = [body["claimId"] for body in worker._calls.of("claim")]
        self.assertEqual(len(set(ids)), 3)
        await until(lambda: not worker._running)
        claiming.cancel()

    async def test_a_worker_whose_calls_are_refused_releases_its_turns(self):
        for call in ("claim", "heartbeat"):
            begun = asyncio.Event()

            @agent("slow")
            async def slow(turn):
                begun.set()
                await asyncio.Event().wait()

            worker = Worker([slow], drain_seconds=0)
            worker._calls = RecordingCalls()
            worker._start(claim_of("slow"))
            await begun.wait()
            worker._calls.refused = call
            with self.assertRaises(RivuletError):
                await worker.run()
            self.assertEqual((call, len(worker._calls.of("release"))), (call, 1))


class Files(unittest.TestCase):
    def refusal_of(self, *names, **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                pathlib.Path(folder, f"{name}.py").write_text(content)
            command = [sys.executable, "-m", "rivulet", *(f"{name}.py" for name in names)]
            ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
            self.assertEqual(ended.returncode, 78)
            return ended.stderr.strip()

    desk = 'from rivulet import agent\n\n@agent("desk")\nasync def desk(turn):\n    pass\n'

    def test_two_agents_of_one_name_are_refused(self):
        self.assertEqual(self.refusal_of("a", "b", a=self.desk, b=self.desk), "Two agents are named desk")

    def test_a_file_that_is_named_and_imported_runs_once(self):
        for names in (("a", "b", "empty"), ("b", "a", "empty")):
            refusal = self.refusal_of(*names, a="from b import desk\n", b=self.desk, empty="")
            self.assertRegex(refusal, "^empty.py has no agent")

    def test_a_syntax_error_of_an_imported_file_is_placed_at_its_import(self):
        refusal = self.refusal_of("a", a="import helper\n", helper="\n\nthis is no Python\n")
        self.assertRegex(refusal, r"^a.py:1 cannot be loaded: SyntaxError: .*helper.py, line 3")
        self.assertRegex(self.refusal_of("helper", helper="\n\nthis is no Python\n"), "^helper.py:3 cannot be loaded")


class Clients(unittest.IsolatedAsyncioTestCase):
    async def test_twenty_streams_leave_room_for_calls_and_end_with_the_client(self):
        with Server() as server:
            client = Client(server.url)
            seen = []

            async def read(task):
                async for event in client.stream(str(task)):
                    seen.append(event.type)

            reading = [asyncio.create_task(read(task)) for task in range(20)]
            await until(lambda: len(seen) == 20)
            self.assertEqual(await client.task("one"), {})
            reading[0].cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading[0]
            client.close()
            await asyncio.gather(*reading[1:])

    async def test_a_call_is_repeated_eight_times_and_waits_as_the_api_asks(self):
        pauses = []

        async def no_sleep(seconds):
            pauses.append(seconds)

        with Server([(503, {"retry-after": "7"}, False)] * 9) as server, mock.patch("rivulet.http.asyncio.sleep", no_sleep):
            async with Client(server.url) as client:
                with self.assertRaises(RivuletError) as raised:
                    await client.task("one")
        self.assertEqual((raised.exception.status, len(server.paths), pauses), (503, 9, [7] * 8))

    async def test_an_unknown_host_is_final(self):
        unknown = mock.Mock(side_effect=socket.gaierror(socket.EAI_NONAME, "unknown"))
        async with Client("http://unknown.invalid") as client:
            with mock.patch("rivulet.http.socket.create_connection", unknown):
                for call in (client.task("one"), anext_of(client.stream("one"))):
                    with self.assertRaises(socket.gaierror):
                        await call
        self.assertEqual(unknown.call_count, 2)

    async def test_a_call_on_a_connection_that_the_api_has_closed_is_repeated_at_once(self):
        never = mock.Mock(side_effect=AssertionError("it paused"))
        with Server([(200, {}, True)]) as server:
            async with Client(server.url) as client:
                client._http._threads._max_workers = 1
                await client.task("one")
                with mock.patch("rivulet.http.asyncio.sleep", never):
                    await client.task("two")
        self.assertEqual(server.paths, ["/v1/tasks/one", "/v1/tasks/two"])


@agent("remembers")
async def remembers(turn):
    visits = await turn.store.get("customer", "visits")
    count = visits["value"] + 1 if visits else 1
    await turn.store.put("customer", "visits", count, version=visits["version"] if visits else 0)
    await turn.store.patch("agent", "last", {"text": turn.text, "before": None})
    found = await turn.store.search("agent", turn.text)
    await turn.send(f"{count} {[stored['key'] for stored in found['data']]}")
    with contextlib.suppress(RivuletError):
        await turn.store.put("customer", "visits", 99, version=99)
    if count > 1:
        await turn.store.remove("customer", "visits")


class StoreAndWebhooks(unittest.IsolatedAsyncioTestCase):
    async def test_a_turn_keeps_values_above_its_task(self):
        first = await test_turn(remembers, "hello")
        self.assertEqual((first.status, first.text), ("completed", "1 ['last']"))
        self.assertEqual(first.store, {"customer": {"visits": 1}, "agent": {"last": {"text": "hello"}}})
        second = await test_turn(remembers, "again", store=first.store)
        self.assertEqual((second.text, second.store), ("2 ['last']", {"agent": {"last": {"text": "again"}}}))

    def test_a_delivery_is_verified_by_its_secret(self):
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        signed = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        headers = {"Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330", "webhook-signature": f"v1,AA== {signed}"}
        body, now = '{"test": 2432232314}', 1614265330
        self.assertEqual(verify_webhook(["whsec_AAAA", secret], headers, body.encode(), now=now), {"test": 2432232314})
        for more, text, at in (
            ({}, body.replace("2", "3"), now),
            ({}, body, now + 360),
            ({}, body, now - 360),
            ({"webhook-signature": "v1,ä"}, body, now),
            ({"webhook-timestamp": "-1"}, body, now),
            ({"Webhook-Id": ""}, body, now),
        ):
            with self.assertRaises(RivuletError) as raised:
                verify_webhook(secret, {**headers, **more}, text, now=at)
            self.assertEqual(raised.exception.code, "unauthorized")
        with self.assertRaises(RivuletError) as raised:
            verify_webhook("secret", headers, body, now=now)
        self.assertEqual(raised.exception.code, "bad_call")


async def anext_of(events):
    async for event in events:
        return event


unittest.main()
