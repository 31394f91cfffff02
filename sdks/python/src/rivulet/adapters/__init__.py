"""
Streams of agent frameworks as updates: `await turn.auto_send(from_openai(stream))`. One module for each framework, which imports nothing of it.

A text is a message, and so are a reasoning, a tool call and a tool's result. The last message of a response carries its usage.
"""
