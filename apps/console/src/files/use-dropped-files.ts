/**
 * Takes the files that a person drops anywhere on the page, or pastes into an element. Without it, a browser shows a dropped file in place of the page.
 */
import { type ClipboardEvent, useEffect, useRef, useState } from 'react'

/** @param place a page takes no files while a dialog is over it */
export function useDroppedFiles(onFiles: (files: File[]) => void, place: 'page' | 'dialog') {
  const [isOver, setOver] = useState(false)
  const latest = useRef(onFiles)
  latest.current = onFiles
  useEffect(() => {
    const isOurs = () => place === 'dialog' || document.querySelector('dialog[open]') === null
    const drag = (event: DragEvent) => {
      if (hasFiles(event) && isOurs()) setOver(true)
    }
    // A drag that leaves the window has no next element.
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false)
    }
    const drop = (event: DragEvent) => {
      setOver(false)
      if (hasFiles(event) && isOurs()) latest.current([...(event.dataTransfer?.files ?? [])])
    }
    window.addEventListener('dragover', drag)
    window.addEventListener('dragleave', leave)
    window.addEventListener('drop', drop)
    return () => {
      window.removeEventListener('dragover', drag)
      window.removeEventListener('dragleave', leave)
      window.removeEventListener('drop', drop)
    }
  }, [place])
  return { isOver, onPaste }

  function onPaste(event: ClipboardEvent): void {
    const files = [...event.clipboardData.files]
    if (files.length === 0) return
    event.preventDefault()
    onFiles(files)
  }
}

/** Also on pages that take no files, a dropped file must not replace the page. */
export function keepPage(): () => void {
  const keep = (event: DragEvent) => {
    if (hasFiles(event)) event.preventDefault()
  }
  window.addEventListener('dragover', keep)
  window.addEventListener('drop', keep)
  return () => {
    window.removeEventListener('dragover', keep)
    window.removeEventListener('drop', keep)
  }
}

function hasFiles({ dataTransfer }: DragEvent): boolean {
  return dataTransfer?.types.includes('Files') === true
}
