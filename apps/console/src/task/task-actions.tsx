/** What can be done with a task beside writing to it: run it again, take it elsewhere, show it to another person, delete it. */
import type { Content, FoldedTurn, Task, TaskHandle } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { lazy, memo, Suspense, useState } from 'react'
import { useAgents } from '../agents/use-agents.ts'
import { ConfirmDialog } from '../shell/elements/confirm-dialog.tsx'
import { copyText } from '../shell/elements/copy-button.tsx'
import { AgainIcon, CopyIcon, DownloadIcon, EditIcon, ForkIcon, MoreIcon, ShareIcon, TrashIcon } from '../shell/elements/icons.tsx'
import { Menu, type MenuItem } from '../shell/elements/menu.tsx'
import { textOf } from '../shell/queries.ts'
import { listPath, navigate, taskPath } from '../shell/route.ts'
import { saveBlob } from '../shell/save-blob.ts'
import { useSession } from '../shell/session.tsx'
import { draftOf } from '../tasks/task-draft.ts'
import type { TurnActs } from '../transcript/turn-acts.ts'
import { isForkable } from './forkable.ts'

const loadTexts = () => import('./transcript-text.ts')
const ShareDialog = lazy(async () => ({ default: (await import('./share-dialog.tsx')).ShareDialog }))
const NewTaskDialog = lazy(async () => ({ default: (await import('../tasks/new-task-dialog.tsx')).NewTaskDialog }))

type Open = { dialog: 'share' } | { dialog: 'delete' } | ({ dialog: 'edit' } & ReturnType<typeof draftOf>) | null

type TaskActionsProps = {
  handle: TaskHandle
  task: Task
  title: string
  isBusy: boolean
  turns: readonly FoldedTurn[]
  /** Null where the page may not write. */
  acts: TurnActs | null
}

export const TaskActions = memo(({ handle, task, title, isBusy, turns, acts }: TaskActionsProps) => {
  const client = useClient()
  const { shared } = useSession()
  const { agents } = useAgents()
  const [open, setOpen] = useState<Open>(null)
  const [note, setNote] = useState<{ text: string; isBad: boolean } | null>(null)
  const close = () => setOpen(null)
  const forkable = turns.findLast(({ status }) => isForkable(status))
  const writingFor = ({ retry, fork }: TurnActs): MenuItem[] => [
    ...(isBusy ? [] : [{ name: 'Retry the last turn', icon: <AgainIcon />, choose: () => attempt(retry) }]),
    { name: 'Run again', icon: <AgainIcon />, choose: () => attempt(runAgain) },
    { name: 'Edit and run', icon: <EditIcon />, choose: () => attempt(edit) },
    ...(forkable ? [{ name: 'Fork', icon: <ForkIcon />, choose: () => fork(forkable.number) }] : []),
  ]
  const reading: MenuItem[] = [
    { name: 'Copy the answer', icon: <CopyIcon />, choose: () => attempt(copyAnswer, 'Copied') },
    { name: 'Export as JSON', icon: <DownloadIcon />, choose: () => attempt(exportJson) },
    { name: 'Export as markdown', icon: <DownloadIcon />, choose: () => attempt(exportMarkdown) },
  ]
  const items = [
    ...(acts ? writingFor(acts) : []),
    ...reading,
    ...(shared ? [] : [{ name: 'Share a link', icon: <ShareIcon />, choose: () => setOpen({ dialog: 'share' }) }]),
    ...(acts && !isBusy ? [{ name: 'Delete', icon: <TrashIcon />, isDanger: true, choose: () => setOpen({ dialog: 'delete' }) }] : []),
  ]

  return (
    <>
      {note && (
        <span role={note.isBad ? 'alert' : 'status'} className={`text-[13px] ${note.isBad ? 'text-bad' : 'text-soft'}`}>
          {note.text}
        </span>
      )}
      <Menu label="Actions" items={items}>
        <MoreIcon />
      </Menu>
      <Suspense>
        {open?.dialog === 'share' && <ShareDialog id={task.id} onClose={close} />}
        {open?.dialog === 'edit' && <NewTaskDialog agents={agents} given={open.given} files={open.files} onClose={close} />}
      </Suspense>
      {open?.dialog === 'delete' && (
        <ConfirmDialog title="Delete this task?" action="Delete" onClose={close} onConfirm={() => attempt(remove)}>
          Its turns and messages are deleted, too. This cannot be undone.
        </ConfirmDialog>
      )}
    </>
  )

  function attempt(work: () => Promise<void>, done = ''): void {
    setNote(null)
    work().then(
      () => done && setNote({ text: done, isBad: false }),
      (reason: unknown) => setNote({ text: textOf(reason), isBad: true }),
    )
  }

  /** All of them, and whole: a list of turns leaves out what is large. */
  async function firstInputs(): Promise<readonly Content[]> {
    const { input, inputs = input ? [input] : [] } = await handle.getTurn(1)
    return inputs
  }

  async function runAgain(): Promise<void> {
    const inputs = await firstInputs()
    const body = { agent: task.agent, params: task.params, metadata: task.metadata, ...(inputs.length > 0 && { input: [...inputs] }) }
    const { task: created } = await client.tasks.create(body)
    navigate(taskPath(created.id))
  }

  async function edit(): Promise<void> {
    setOpen({ dialog: 'edit', ...draftOf(task, await firstInputs()) })
  }

  async function copyAnswer(): Promise<void> {
    const { answerOf, readAll } = await loadTexts()
    await copyText(answerOf(await readAll(handle)))
  }

  async function exportJson(): Promise<void> {
    const { jsonOf, readAll } = await loadTexts()
    const [{ task: stored, turns }, messages] = await Promise.all([handle.detail(), readAll(handle)])
    saveBlob(`${task.id}.json`, new Blob([jsonOf(stored, turns, messages)], { type: 'application/json' }))
  }

  async function exportMarkdown(): Promise<void> {
    const { markdownOf, readAll } = await loadTexts()
    saveBlob(`${task.id}.md`, new Blob([markdownOf(title, await readAll(handle))], { type: 'text/markdown' }))
  }

  async function remove(): Promise<void> {
    await client.tasks.get(task.id).remove()
    navigate(listPath())
  }
})
