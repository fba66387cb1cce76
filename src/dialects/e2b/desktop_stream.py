# In the place of noVNC: leads browsers from a port of the sandbox to the live view of the server.
# Arguments: the port, the path of the view with its key, and whether the view may control the screen.
import hmac
import http.server
import sys
import urllib.parse

port, view, control = int(sys.argv[1]), sys.argv[2], sys.argv[3] == '1'


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = 10

    def do_GET(self):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        domain = self.headers.get('Host', '').partition('.')[2]
        try:
            with open('/tmp/.desktop-stream') as f:
                password = f.read(256)
        except FileNotFoundError:
            self.send_error(503, 'The stream is stopped')
            return
        if not hmac.compare_digest(query.get('password', '').encode(), password.encode()) and password:
            self.send_error(401, 'The password of the stream is missing or wrong')
            return
        target = view + ('&control=1' if control and query.get('view_only') != 'true' else '')
        self.send_response(302)
        self.send_header('Location', f'//{domain}{target}' if domain else target)
        self.send_header('Referrer-Policy', 'no-referrer')
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(('127.0.0.1', port), Handler).serve_forever()
