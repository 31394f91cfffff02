/**
 * Evaluates an expression such as `2 * (3 + 4)`: numbers, `+ - * / % ^`, brackets. It parses the text itself, so no input is ever run as code.
 *
 *   sum     = product (('+' | '-') product)*
 *   product = power (('*' | '/' | '%') power)*
 *   power   = '-' power | operand ('^' power)?
 *   operand = number | '(' sum ')'
 */
const maxLength = 200

/** Throws, with a sentence for people, for what is not a sum or has no finite result. */
export function evaluate(expression: string): number {
  if (expression.length > maxLength) throw new Error(`An expression may have at most ${maxLength} characters`)
  const tokens = tokensOf(expression)
  let at = 0
  const result = sum()
  if (at < tokens.length) unexpected()
  if (!Number.isFinite(result)) throw new Error('The result is not finite')
  // 0.1 + 0.2 is 0.3 to people.
  return Number(result.toPrecision(15))

  function sum(): number {
    let value = product()
    for (;;) {
      if (take('+')) value += product()
      else if (take('-')) value -= product()
      else return value
    }
  }

  function product(): number {
    let value = power()
    for (;;) {
      if (take('*')) value *= power()
      else if (take('/')) value /= power()
      else if (take('%')) value %= power()
      else return value
    }
  }

  function power(): number {
    if (take('-')) return -power()
    const base = operand()
    return take('^') ? base ** power() : base
  }

  function operand(): number {
    if (take('(')) {
      const value = sum()
      if (!take(')')) throw new Error('Missing closing bracket')
      return value
    }
    const token = tokens[at]
    if (token === undefined || Number.isNaN(Number(token))) return unexpected()
    at += 1
    return Number(token)
  }

  function take(operator: string): boolean {
    if (tokens[at] !== operator) return false
    at += 1
    return true
  }

  function unexpected(): never {
    throw new Error(at < tokens.length ? `Did not expect ${JSON.stringify(tokens[at])} there` : 'Unexpected end of the expression')
  }
}

function tokensOf(expression: string): string[] {
  const plain = expression.replaceAll('×', '*').replaceAll('÷', '/').replaceAll('−', '-').replaceAll('**', '^')
  return plain.match(/\d+(\.\d+)?|\.\d+|[^\s]/g) ?? []
}
