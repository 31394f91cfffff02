/** Takes the files that a person drops on an element, or pastes into it. */
import { type ClipboardEvent, type DragEvent, useState } from 'react'

export function useDroppedFiles(onFiles: (files: File[]) => void) {
  const [isOver, setOver] = useState(false)
  const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer.types.includes('Files')
  return {
    isOver,
    handlers: {
      onDragOver(event: DragEvent) {
        if (!hasFiles(event)) return
        event.preventDefault()
        setOver(true)
      },
      onDragLeave: () => setOver(false),
      onDrop(event: DragEvent) {
        if (!hasFiles(event)) return
        event.preventDefault()
        setOver(false)
        onFiles([...event.dataTransfer.files])
      },
      onPaste(event: ClipboardEvent) {
        const files = [...event.clipboardData.files]
        if (files.length === 0) return
        event.preventDefault()
        onFiles(files)
      },
    },
  }
}
