/** `vite preview` serves the built page and sends its calls to the API, as a reverse proxy does. */
export default { preview: { proxy: { '/v1': process.env.RIVULET_URL } } }
