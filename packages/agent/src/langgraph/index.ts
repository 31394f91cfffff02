/** A stream of a LangGraph graph as the protocol's updates. Does not import LangGraph: it knows the shapes of its messages. */
export { fromLangGraph, type LangGraphPart } from './from-langgraph.ts'
