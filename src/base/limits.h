/*
 * Every maximum for what comes from outside, with its name. Reaching one is an error of its own,
 * never a crash.
 */
#pragma once

enum {
	/* HTTP */
	LIMIT_HEADER_COUNT = 100,
	LIMIT_HEADER_BYTES = 32 * 1024, /* all headers of a request together */
	LIMIT_TARGET_BYTES = 8 * 1024,
	/* of a JSON request; uploads stream and have their own */
	LIMIT_BODY_BYTES = 32 * 1024 * 1024,
	/* requests of one connection handled before others get their turn */
	LIMIT_PIPELINE = 64,
	/* read ahead on a connection whose answer is pending */
	LIMIT_BACKLOG_BYTES = 64 * 1024,
	LIMIT_CONNECTIONS = 4096,
	LIMIT_WS_MESSAGE_BYTES = 32 * 1024 * 1024,
	LIMIT_HEADER_SECONDS = 15,   /* to send the head of a request */
	LIMIT_BODY_SECONDS = 45,     /* to send the body, and a second more for every … */
	LIMIT_BODY_RATE = 16 * 1024, /* … bytes that came */
	LIMIT_IDLE_SECONDS = 120,    /* of a kept-alive connection */
	LIMIT_WRITE_SECONDS = 60,    /* a client that takes nothing for so long is gone */
	/* the same while more than half of LIMIT_HELD_BYTES is held */
	LIMIT_WRITE_PRESSED_SECONDS = 10,
	LIMIT_LINGER_SECONDS = 2, /* a connection we closed still swallows what was on its way */
	LIMIT_LINGER_BYTES = 64 * 1024 * 1024,
	/* rest of a body swallowed to keep a connection whose answer came early */
	LIMIT_DISCARD_BYTES = 64 * 1024,
	/* waiting for a client that does not read; one message may exceed it */
	LIMIT_OUT_QUEUE_BYTES = 8 * 1024 * 1024,
	/* silence on an event stream or a WebSocket before a sign of life */
	LIMIT_HEARTBEAT_SECONDS = 15,
	/* a WebSocket client that answers no ping for so long is gone */
	LIMIT_WS_SILENT_SECONDS = 60,
	LIMIT_CLIENT_BODY_BYTES = 256 * 1024 * 1024, /* of an answer that our own client keeps */
	/* JSON */
	LIMIT_JSON_DEPTH = 64,
	LIMIT_JSON_VALUES = 100 * 1000,    /* a tree costs some hundred bytes a value */
	LIMIT_JSON_NAME_BYTES = 64 * 1024, /* of a name in an object */
	/* in one object; jansson's table of 65,536 takes 12 ms to grow */
	LIMIT_JSON_NAMES = 32 * 1000,
	LIMIT_SCHEMA_DEPTH = 24, /* of a schema that a client gives */
	/* to hold one value to it; alternatives inside alternatives multiply */
	LIMIT_SCHEMA_STEPS = 1000 * 1000,
	/* sessions and cells */
	LIMIT_CODE_BYTES = 8 * 1024 * 1024,
	LIMIT_STDIN_BYTES = 8 * 1024 * 1024,
	LIMIT_VARIABLES_BYTES = 16 * 1024 * 1024,
	LIMIT_ARGUMENTS = 256, /* of a program */
	LIMIT_ARGUMENT_BYTES = 64 * 1024,
	LIMIT_NAME_BYTES = 128,
	LIMIT_ENV_COUNT = 128,
	LIMIT_ENV_BYTES = 128 * 1024,
	LIMIT_METADATA_BYTES = 16 * 1024,
	LIMIT_KEPT_METADATA_BYTES = 20 * 1024, /* what a dialect keeps with it */
	LIMIT_PRELOAD_COUNT = 64,
	LIMIT_PACKAGES = 128,            /* named in one request */
	LIMIT_PACKAGE_BYTES = 1024,      /* of one of those names, with versions and hashes */
	LIMIT_PROFILES = 256,            /* own profiles of a server */
	LIMIT_PROFILE_NAMES = 512,       /* of one list of a profile */
	LIMIT_PROFILE_BYTES = 32 * 1024, /* of a profile in a request */
	LIMIT_QUEUED_CELLS = 16,
	/* the history of cells: of one session, of its records, of all sessions together */
	LIMIT_RECORDS = 1000,
	LIMIT_HISTORY_BYTES = 16 * 1024 * 1024,
	LIMIT_ALL_HISTORY_BYTES = 128 * 1024 * 1024,
	LIMIT_RECORD_BYTES = 8 * 1024 * 1024,     /* of the outcome of one cell */
	LIMIT_RECORD_OUTPUT_BYTES = 64 * 1024,    /* of stdout and of stderr, each */
	LIMIT_INTROSPECT_BYTES = 4 * 1024 * 1024, /* an answer about variables */
	LIMIT_RECORD_CODE_BYTES = 256 * 1024,     /* of its code */
	/* parked copies of one session, checkpoints and its own together */
	LIMIT_SNAPSHOTS = 80,
	LIMIT_CHECKPOINTS = 64, /* of one session, with a name */
	LIMIT_FORKS = 256,      /* made by one request */
	LIMIT_KEPT_CELLS = 14,  /* and without one */
	/* programs of one session that run beside its interpreters, contexts included */
	LIMIT_PROGRAMS = 80,
	LIMIT_CONTEXTS = 15,                    /* interpreters of one session beside its own */
	LIMIT_PROCESSES = 64,                   /* of these, processes that a client started */
	LIMIT_ENDED_PROCESSES = 32,             /* whose end and last output are kept */
	LIMIT_PROCESS_ARGS = 512,               /* arguments of a command, and variables */
	LIMIT_PROCESS_BYTES = 128 * 1024,       /* of a command with its arguments */
	LIMIT_PROCESS_KEPT_BYTES = 1024 * 1024, /* output kept for those who come back to it */
	LIMIT_PROCESS_SECONDS = 7 * 24 * 3600,  /* a process's longest time limit */
	LIMIT_PATH_BYTES = 1024,
	LIMIT_TOMBSTONES = 4096, /* ended sessions whose end is remembered */
	/* tools */
	LIMIT_TOOLS = 128,             /* of one session */
	LIMIT_TOOL_BYTES = 256 * 1024, /* of one definition, its source included */
	LIMIT_TOOL_CALLS = 128,        /* of one session, waiting for their answers */
	LIMIT_TOOL_CALLS_PER_CELL = 10 * 1000,
	/* JSON text of the arguments or of the result of a call */
	LIMIT_TOOL_VALUE_BYTES = 16 * 1024 * 1024,
	LIMIT_TOOL_SECONDS = 3600, /* a call's longest time limit */
	/* a cell's clock stands still for its tools no longer than this in all */
	LIMIT_TOOL_PAUSE_SECONDS = 3600,
	LIMIT_TOOL_POLLERS = 16, /* requests of one session that wait for calls */
	/* the API */
	LIMIT_RUN_FILES = 256, /* files given with one run */
	/* of a run's code and Python files, in which imports are looked for */
	LIMIT_GUESSED_BYTES = 256 * 1024,
	LIMIT_RUN_FILES_BYTES = 24 * 1024 * 1024, /* all together */
	LIMIT_BATCH_ITEMS = 8192,                 /* of one batch */
	LIMIT_IDEMPOTENT_REQUESTS = 4096, /* with an Idempotency-Key whose answers are kept */
	LIMIT_IDEMPOTENT_SECONDS = 3600,  /* for this time */
	LIMIT_IDEMPOTENT_BYTES = 64 * 1024 * 1024, /* of one answer */
	LIMIT_FLEET_NODES = 256,                   /* that one router knows */
	LIMIT_CHAT_FILES_BYTES = 64 * 1024 * 1024, /* kept for LibreChat, all together */
	LIMIT_CHAT_FILES = 1000,                   /* of one token */
	LIMIT_CHAT_FILES_SECONDS = 24 * 3600,      /* so long */
	LIMIT_CHAT_TOOL_SECONDS = 300,             /* until LibreChat brings the result of a tool */
	/* programs of one token that ended meanwhile, whose outcomes wait for it */
	LIMIT_CHAT_ENDED = 32,
	LIMIT_PAGE = 1000,                  /* entries of one page of a list */
	LIMIT_LOG_PAGE_BYTES = 1024 * 1024, /* text of one page of a log */
	LIMIT_LOG_SCAN = 20 * 1000,         /* entries looked at for one page */
	LIMIT_QUERY_PARAMS = 32,
	/* events kept for clients that come back, and clients that follow them */
	LIMIT_HUB_EVENTS = 20 * 1000,
	LIMIT_HUB_BYTES = 16 * 1024 * 1024,
	LIMIT_HUB_TEXT_BYTES = 64 * 1024, /* of one event */
	LIMIT_FOLLOWERS = 256,
	LIMIT_TOKEN_BYTES = 1024, /* of a token in an address */
	/* of an address in a line of the log; the rest is cut */
	LIMIT_LOGGED_TARGET_BYTES = 256,
	LIMIT_JUPYTER_HEADER_BYTES = 4096,         /* header of a Jupyter message */
	LIMIT_JUPYTER_HISTORY = 1000,              /* inputs that a kernel remembers */
	LIMIT_JUPYTER_HISTORY_BYTES = 1024 * 1024, /* of them together */
	/* events kept for a client that reads slowly */
	LIMIT_OUTBOX_BYTES = 128 * 1024 * 1024,
	/* of an episode, shown by OpenEnv's web interface */
	LIMIT_WEB_LOG_STEPS = 1000,
	LIMIT_WEB_LOG_BYTES = 2 * 1024 * 1024, /* the same; older ones go */
	/* cells of one WebSocket, waiting or running */
	LIMIT_WS_CELLS = 32,
	/* a request waits so long for a session's files to be there */
	LIMIT_START_SECONDS = 30,
	/* of guests and for slow clients, all together; see memory_account.h */
	LIMIT_HELD_BYTES = 512 * 1024 * 1024,
	/* what a guest may send */
	LIMIT_FRAME_BYTES = 48 * 1024 * 1024,
	LIMIT_DISPLAYS = 256,                   /* of one cell */
	LIMIT_DISPLAY_BYTES = 32 * 1024 * 1024, /* of one cell, all together */
	LIMIT_BUNDLE_ITEMS = 16,                /* representations of one value */
	LIMIT_MIME_BYTES = 128,
	LIMIT_FILES = 1000,             /* changes listed of one cell */
	LIMIT_ADVICE_BYTES = 2048,      /* what to do about an error, and its code */
	LIMIT_ERROR_BYTES = 256 * 1024, /* traceback */
	/* an exception's text, which may carry an agent's answer */
	LIMIT_MESSAGE_BYTES = 16 * 1024 * 1024,
	/* the network of sessions */
	LIMIT_FILE_METADATA_BYTES = 3072,   /* of a file of E2B's, as JSON */
	LIMIT_NETWORK_RULES = 64,           /* of one session */
	LIMIT_PROXY_HEAD_BYTES = 32 * 1024, /* what a client may say before it names its target */
	/* read at once from one side, and kept for the other */
	LIMIT_PROXY_READ_BYTES = 64 * 1024,
	LIMIT_PROXY_CONNECTIONS = 128,      /* of one session at once; more wait to be accepted */
	LIMIT_PROXY_ALL_CONNECTIONS = 4096, /* of all sessions together */
	LIMIT_PROXY_HEAD_SECONDS = 15,      /* to name the target */
	LIMIT_PROXY_CONNECT_SECONDS = 30,   /* to resolve a name and reach it */
	LIMIT_PROXY_IDLE_SECONDS = 300,     /* without a byte either way */
	/* connections to servers inside sessions */
	LIMIT_PORT_CONNECTIONS = 128,         /* of one session */
	LIMIT_PORT_CONNECT_SECONDS = 10,      /* for a server to accept */
	LIMIT_PORT_IDLE_SECONDS = 1800,       /* without a byte either way */
	LIMIT_PORT_QUEUE_BYTES = 1024 * 1024, /* for a server that does not read */
	LIMIT_PORT_HEAD_BYTES = 64 * 1024,    /* the head of its answer */
	LIMIT_PORT_HEADERS = 128,             /* headers in it */
	LIMIT_PORTS_LISTED = 64,
	/* directories of sessions that clients follow */
	LIMIT_FILE_WATCHES = 32,          /* of one session */
	LIMIT_WATCHED_DIRECTORIES = 1024, /* of one watch, with those below */
	/*
	 * of all watches of a session: they are inotify watches of the daemon's user, whose number
	 * max_user_watches limits
	 */
	LIMIT_SESSION_WATCHED_DIRECTORIES = 8192,
	LIMIT_FILE_EVENTS = 4096, /* that wait for the client that follows the watch */
	/* displays */
	LIMIT_DISPLAY_SIDE = 4096, /* pixels, of a screen */
	/* sizes of screens for which a warm X server is kept */
	LIMIT_DISPLAY_CLASSES = 4,
	/* that a cell whose code has ended waits for its windows to be painted */
	LIMIT_RENDER_SECONDS = 60,
	LIMIT_WINDOWS = 64,                      /* windows listed */
	LIMIT_CAPTURE_BYTES = 128 * 1024 * 1024, /* pixels of one picture */
	/* of an encoded picture; base64 makes it a third longer */
	LIMIT_PICTURE_BYTES = 40 * 1024 * 1024,
	/* cells left in a main loop, one inside the other */
	LIMIT_LEFT_CELLS = 8,
	LIMIT_DISPLAY_ASKS = 16,      /* questions to one display at a time */
	LIMIT_INPUT_ACTIONS = 64,     /* of one request */
	LIMIT_INPUT_TEXT = 16 * 1024, /* bytes of text to type */
	LIMIT_INPUT_KEYS = 8,         /* pressed together */
	LIMIT_INPUT_SECONDS = 60,     /* of a pause, or a key held */
	/* of all tokens; more are refused until some expire */
	LIMIT_LIVE_LINKS = 1024,
	/* of one token; its own that would expire first goes */
	LIMIT_LIVE_LINKS_OF_ONE = 64,
	LIMIT_NETWORK_ATTEMPTS = 100,             /* of one session, kept for GET …/network */
	LIMIT_WATCHERS = 8,                       /* of one screen: recordings and live views */
	LIMIT_RECORDINGS = 8,                     /* kept by one session; the oldest is deleted */
	LIMIT_RECORDING_BYTES = 64 * 1024 * 1024, /* of one; it stops there */
	LIMIT_RECORDING_FRAMES = 20000,
	LIMIT_RECORDING_SECONDS = 3600,
	LIMIT_FILM_BYTES = 256 * 1024 * 1024,    /* of a recording in another format */
	LIMIT_FILM_SECONDS = 300,                /* that making it may take */
	LIMIT_RUN_FILM_BYTES = 32 * 1024 * 1024, /* of one that is part of an answer */
	LIMIT_RECORDING_CELLS = 256,             /* whose times are told */
	LIMIT_ANSWER_BYTES = 16 * 1024 * 1024,   /* a final answer, in each of its forms */
	/* volumes */
	LIMIT_VOLUMES = 1024,           /* of a server */
	LIMIT_VOLUME_DEPTH = 32,        /* directories inside each other that are counted */
	LIMIT_VOLUME_FILES = 256 * 1024 /* with directories */
};
