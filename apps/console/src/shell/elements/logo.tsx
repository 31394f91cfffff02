/** The mark and the name of Rivulet. */
export function Logo() {
  return (
    <span className="flex items-center gap-2 text-[15px] font-semibold tracking-tight">
      <svg viewBox="0 0 32 32" className="size-6" aria-hidden="true">
        <rect width="32" height="32" rx="8" fill="#0f6b82" />
        <g fill="none" stroke="#fff" strokeWidth="2.6" strokeLinecap="round">
          <path d="M6 12c3.3-3 6.700-3 10 0s6.700 3 10 0" opacity=".55" />
          <path d="M6 20c3.300-3 6.700-3 10 0s6.700 3 10 0" />
        </g>
      </svg>
      Rivulet
    </span>
  )
}
