/**
 * Turns what a view describes into elements, in place: an element that stays keeps its focus, its scroll position and what
 * was typed into it.
 *
 * D1. Text becomes text nodes and nothing else; there is no way in here for a string to become markup.
 * D2. Elements with a `key` are found again by it, the others by their order among those of the same name.
 */

/**
 * @typedef {{ tag: string, key: string | undefined, attributes: Map<string, string>, handlers: Map<string, (event: Event) => void>, children: readonly (Described | string)[] }} Described
 * @typedef {Described | string | null | false | undefined | readonly Child[]} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>} Properties
 */

/**
 * @param {keyof HTMLElementTagNameMap} tag
 * @param {Properties} properties `key`; handlers by the event's name with `on` before it; everything else is an attribute
 * @param {...Child} children
 * @returns {Described}
 */
export function h(tag, properties = {}, ...children) {
  /** @type {Described['attributes']} */
  const attributes = new Map()
  /** @type {Described['handlers']} */
  const handlers = new Map()
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'key' || value === false || value === null || value === undefined) continue
    if (typeof value === 'function') handlers.set(name.slice(2), value)
    else if (!name.startsWith('on')) attributes.set(name, value === true ? '' : String(value))
  }
  const { key } = properties
  return { tag, key: typeof key === 'string' ? key : undefined, attributes, handlers, children: flat(children) }
}

/** @param {readonly Child[]} children @returns {(Described | string)[]} */
function flat(children) {
  return children.flatMap((child) => {
    if (child === null || child === undefined || child === false || child === '') return []
    return typeof child === 'object' && 'length' in child ? flat(child) : [child]
  })
}

/** What was last described of an element. @type {WeakMap<Node, Described>} */
const shown = new WeakMap()
/** Events that an element listens to, each once: a second listener would make two requests of one press. @type {WeakMap<Node, Set<string>>} */
const listened = new WeakMap()

/** @param {Element} parent @param {readonly Child[]} children */
export function show(parent, children) {
  patch(parent, flat(children))
}

/** @param {Element} parent @param {readonly (Described | string)[]} wanted */
function patch(parent, wanted) {
  /** @type {Map<string, Node[]>} */
  const present = new Map()
  for (const node of parent.childNodes) {
    const name = nameOf(node)
    const same = present.get(name)
    if (same === undefined) present.set(name, [node])
    else same.push(node)
  }
  const nodes = wanted.map((each) => present.get(nameOf(each))?.shift() ?? made(each))
  // What goes, goes first: then what stays is already in its place, and need not be moved, which would take its focus.
  for (const leftover of present.values()) for (const node of leftover) parent.removeChild(node)
  nodes.forEach((node, index) => {
    const there = parent.childNodes[index]
    if (there !== node) parent.insertBefore(node, there ?? null)
    const each = wanted[index]
    if (typeof each === 'string') {
      if (node.nodeValue !== each) node.nodeValue = each
    } else if (each !== undefined) update(/** @type {HTMLElement} */ (node), each)
  })
}

/** @param {Node | Described | string} one */
function nameOf(one) {
  if (typeof one === 'string') return '#text'
  if (!(one instanceof Node)) return `${one.tag} ${one.key ?? ''}`
  const known = shown.get(one)
  return known === undefined ? one.nodeName : `${known.tag} ${known.key ?? ''}`
}

/** @param {Described | string} one */
function made(one) {
  return typeof one === 'string' ? document.createTextNode(one) : document.createElement(one.tag)
}

/** @param {HTMLElement} element @param {Described} described */
function update(element, described) {
  const before = shown.get(element)
  // Compared with what was described before, not with the page: what the reader opened or typed stays.
  for (const name of before?.attributes.keys() ?? []) if (!described.attributes.has(name)) element.removeAttribute(name)
  for (const [name, value] of described.attributes)
    if (before?.attributes.get(name) !== value) element.setAttribute(name, value)
  for (const type of described.handlers.keys()) listen(element, type)
  shown.set(element, described)
  patch(element, described.children)
}

/** @param {HTMLElement} element @param {string} type */
function listen(element, type) {
  const types = listened.get(element) ?? new Set()
  if (types.has(type)) return
  listened.set(element, types.add(type))
  element.addEventListener(type, (event) => shown.get(element)?.handlers.get(type)?.(event))
}
