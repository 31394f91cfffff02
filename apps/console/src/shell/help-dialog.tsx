import { Dialog } from './elements/dialog.tsx'

const shortcuts: [keys: string[], meaning: string][] = [
  [['j', 'k'], 'next and previous task; in the inspector, next and previous event'],
  [['Enter'], 'open the selected task'],
  [['n'], 'new task'],
  [['/'], 'search tasks; on a task, write to it'],
  [['s'], 'stop the task'],
  [['i'], 'open or close the inspector'],
  [['Esc'], 'from an event back to now; close what is open'],
  [['?'], 'this help'],
]

export function HelpDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className="grid grid-cols-[auto_1fr] items-baseline gap-x-5 gap-y-2.5">
        {shortcuts.map(([keys, meaning]) => (
          <div key={meaning} className="contents">
            <dt className="flex gap-1">
              {keys.map(key => (
                <kbd key={key} className="min-w-6 rounded border border-line bg-well px-1.5 py-0.5 text-center font-mono text-xs">
                  {key}
                </kbd>
              ))}
            </dt>
            <dd className="text-soft">{meaning}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
