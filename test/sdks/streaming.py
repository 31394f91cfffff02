"""OpenAI's SDK for Python, unmodified, with Rivulet as its base URL. Prints one line of JSON: what the function that its first argument names has received."""

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


def files():
    created = client.files.create(file=("one.txt", b"one"), purpose="user_data")
    listed = [file.id for file in client.files.list(order="desc", limit=1)][:1]
    content = client.files.content(created.id).read().decode()
    return {"filename": created.filename, "isListed": listed == [created.id], "content": content, "deleted": client.files.delete(created.id).deleted}


def conversations():
    created = client.conversations.create(metadata={"a": "b"}, items=[{"role": "user", "content": "one"}])
    client.conversations.items.create(created.id, items=[{"role": "assistant", "content": "two"}])
    client.conversations.update(created.id, metadata={"c": "d"})
    items = client.conversations.items.list(created.id, order="asc", limit=1)
    texts = [item.content[0].text for item in items]
    metadata = client.conversations.retrieve(created.id).metadata
    return {"texts": texts, "metadata": metadata, "deleted": client.conversations.delete(created.id).deleted}


print(json.dumps(globals()[call]()))
