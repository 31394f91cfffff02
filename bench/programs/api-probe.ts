/** Loaded into the API process before its program, where somebody wants to know what keeps it. */
import { answerQuestions } from '../child.ts'
import { createProbe } from './probe.ts'

answerQuestions(createProbe())
