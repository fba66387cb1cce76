# Functions in the place of programs that @e2b/desktop starts: read before a command of a desktop sandbox.
# The session has a screen and a window manager already. The stream is the live view of the server: x11vnc only notes
# that it is on, and desktop_stream.py leads browsers to the view.
_desktop_stream=/tmp/.desktop-stream
Xvfb() { :; }
startxfce4() { :; }
pgrep() {
	case "$*" in
	'-x xfce4-session' | '-x xfwm4' | '-x xfdesktop') echo 1 ;;
	'-x x11vnc') [ -e "$_desktop_stream" ] && echo 1 ;;
	*) command pgrep "$@" ;;
	esac
}
pkill() {
	case "$*" in
	x11vnc) rm "$_desktop_stream" ;;
	*) command pkill "$@" ;;
	esac
}
x11vnc() {
	case "$*" in
	'-storepasswd '*) printf %s "$2" >"$3" ;;
	*' -id '*)
		echo 'the stream of Glovebox shows the whole screen: leave windowId out'
		return 1
		;;
	*' -usepw'*) cp ~/.vnc/passwd "$_desktop_stream" ;;
	*) : >"$_desktop_stream" ;;
	esac
}
# Network tables of /proc are not shown in a jail.
netstat() {
	local port
	if [ "$*" != -tuln ]; then
		command netstat "$@"
		return
	fi
	for port in 5900 6080 ${DESKTOP_PORT-}; do
		(: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && echo "tcp 0 0 127.0.0.1:$port 0.0.0.0:* LISTEN"
	done
}
# An application without a desktop entry is started by the name of its program.
gtk-launch() { command gtk-launch "$@" 2>/dev/null || "$@"; }
command -v xdpyinfo >/dev/null || xdpyinfo() { xdotool getdisplaygeometry; }
command -v xrandr >/dev/null || xrandr() { echo "Screen 0: $(xdotool getdisplaygeometry | tr ' ' x)"; }
