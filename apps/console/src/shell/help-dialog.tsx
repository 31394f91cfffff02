/** The list of shortcuts, and the switch that turns them off. */
import { Dialog } from './elements/dialog.tsx'
import { shortcutsPlace } from './hooks/use-keys.ts'
import { useStored } from './hooks/use-stored.ts'

const shortcuts: [keys: string[], meaning: string][] = [
  [['j', 'k'], 'next and previous task or question; in the inspector, next and previous event'],
  [['Enter'], 'open the focused task'],
  [['x'], 'select the focused task'],
  [['n'], 'new task'],
  [['/'], 'search tasks; on a task, write to it'],
  [['a'], 'on a task, respond to what it asks'],
  [['s'], 'stop the task'],
  [['i'], 'open or close the inspector'],
  [['Esc'], 'from an event back to now; close what is open'],
  [['?'], 'this help'],
]

export function HelpDialog({ onClose }: { onClose: () => void }) {
  const [choice, setChoice] = useStored(shortcutsPlace, localStorage)
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <label className="mb-4 flex items-center gap-2">
        <input
          type="checkbox"
          checked={choice !== 'off'}
          onChange={event => setChoice(event.target.checked ? '' : 'off')}
          className="accent-accent"
        />
        Single-letter shortcuts
      </label>
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
