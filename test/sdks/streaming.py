"""OpenAI's SDK for Python, unmodified, with Rivulet as its base URL. Prints one line of JSON: what the call that its first argument names has received."""

import json
import sys

from openai import OpenAI

call, base_url, model = sys.argv[1:]
client = OpenAI(base_url=base_url, api_key="none", max_retries=0)


def stream_response():
    words = []
    for event in client.responses.create(model=model, input="go", stream=True):
        if event.type == "response.output_text.delta":
            words.append(event.delta)
    return {"text": "".join(words), "last": event.type}


def stream_chat():
    chunks = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "go"}], stream=True)
    return {"text": "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)}


def cancel_and_delete():
    created = client.responses.create(model=model, input="go", background=True)
    status = client.responses.cancel(created.id).status
    client.responses.delete(created.id)
    try:
        client.responses.retrieve(created.id)
    except Exception as error:
        return {"status": status, "after": getattr(error, "status_code", repr(error))}


calls = {"stream_response": stream_response, "stream_chat": stream_chat, "cancel_and_delete": cancel_and_delete}
print(json.dumps(calls[call]()))
