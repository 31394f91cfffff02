/** A button in one of four looks. */
import type { ButtonHTMLAttributes, Ref } from 'react'

type ButtonKind = 'primary' | 'plain' | 'quiet' | 'danger'

const looks: Record<ButtonKind, string> = {
  primary: 'bg-accent text-accent-ink hover:opacity-90',
  plain: 'border border-line bg-panel hover:border-line-strong',
  quiet: 'text-soft hover:bg-well hover:text-ink',
  danger: 'border border-bad bg-bad-well text-bad hover:opacity-90',
}

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { kind?: ButtonKind; ref?: Ref<HTMLButtonElement> }

export function Button({ kind = 'plain', className = '', ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      className={`inline-flex min-h-8 items-center justify-center gap-1.5 rounded-lg px-3 py-1 font-medium disabled:opacity-50 ${looks[kind]} ${className}`}
      {...rest}
    />
  )
}
