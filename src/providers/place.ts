/** Where an API is: origin and path of a base URL, without a slash at its end. Read once for each, not for each call. */
const places = new Map<string, { readonly origin: string; readonly path: string }>()

/** @param baseUrl from the configuration: there are few */
export function placeOf(baseUrl: string): { readonly origin: string; readonly path: string } {
  const known = places.get(baseUrl)
  if (known !== undefined) return known
  const { origin, pathname } = new URL(baseUrl)
  const place = { origin, path: pathname.replace(/\/+$/, '') }
  places.set(baseUrl, place)
  return place
}

/** Where a provider's webhooks reach the gateway. @param publicUrl its address as the provider sees it */
export const webhookUrl = (publicUrl: string, provider: string): string =>
  `${publicUrl.replace(/\/+$/, '')}/v1/providers/${provider}/webhooks`

/** The place of `path` under a base URL. */
export function under(baseUrl: string, path: string): { readonly origin: string; readonly path: string } {
  const place = placeOf(baseUrl)
  return { origin: place.origin, path: `${place.path}${path}` }
}
