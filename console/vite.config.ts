import { defineConfig } from 'vite';

// Relative to the page, which the server gives at "/"; names carry a hash, so that they can be cached for good.
export default defineConfig({
  base: '/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: 'dist',
    assetsDir: 'console',
    modulePreload: false,
    sourcemap: false,
    target: 'es2022',
    assetsInlineLimit: 0,
    reportCompressedSize: true,
    rolldownOptions: { output: { entryFileNames: 'console/[name]-[hash].js', chunkFileNames: 'console/[name]-[hash].js', assetFileNames: 'console/[name]-[hash][extname]' } },
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:8000', '/version': 'http://127.0.0.1:8000' } },
});
