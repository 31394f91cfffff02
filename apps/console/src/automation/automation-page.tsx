/** What happens without a person: tasks that the server creates by the clock, and addresses that it calls when tasks change. */
import { usePageTitle } from '../shell/hooks/use-page-title.ts'
import { ScheduleSection } from './schedule-section.tsx'
import { WebhookSection } from './webhook-section.tsx'

export function AutomationPage() {
  usePageTitle('Schedules and webhooks')
  return (
    <div className="h-full overflow-y-auto">
      <div className="mx-auto max-w-5xl px-4 py-4 sm:px-6">
        <h1 className="text-lg font-semibold tracking-tight">Schedules and webhooks</h1>
        <ScheduleSection />
        <WebhookSection />
      </div>
    </div>
  )
}
