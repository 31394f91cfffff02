/** A link inside the console: an ordinary one for the browser (new tab, copy), and no reload for a plain click. */
import type { AnchorHTMLAttributes, MouseEvent, Ref } from 'react'
import { navigate } from '../route.ts'

export function Link({ to, onClick, ...rest }: AnchorHTMLAttributes<HTMLAnchorElement> & { to: string; ref?: Ref<HTMLAnchorElement> }) {
  return <a href={to} onClick={follow} {...rest} />

  function follow(event: MouseEvent<HTMLAnchorElement>): void {
    onClick?.(event)
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    navigate(to)
  }
}
