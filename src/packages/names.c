#include "packages/names.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "base/text.h"

enum { NAMES_TOP_MAX = 64 }; /* longer than any slip */

/* Modules whose package has another name; in order of the modules. */
static const struct {
	const char *module, *package;
} modules[] = {
	{ "Bio", "biopython" },
	{ "Crypto", "pycryptodome" },
	{ "Cryptodome", "pycryptodomex" },
	{ "IPython", "ipython" },
	{ "Levenshtein", "levenshtein" },
	{ "MySQLdb", "mysqlclient" },
	{ "OpenGL", "pyopengl" },
	{ "OpenSSL", "pyopenssl" },
	{ "PIL", "pillow" },
	{ "PyPDF2", "pypdf2" },
	{ "Xlib", "python-xlib" },
	{ "absl", "absl-py" },
	{ "apt", "python-apt" },
	{ "attr", "attrs" },
	{ "barcode", "python-barcode" },
	{ "bidi", "python-bidi" },
	{ "bs4", "beautifulsoup4" },
	{ "cairo", "pycairo" },
	{ "community", "python-louvain" },
	{ "cpuinfo", "py-cpuinfo" },
	{ "cv2", "opencv-python" },
	{ "dateutil", "python-dateutil" },
	{ "decouple", "python-decouple" },
	{ "dns", "dnspython" },
	{ "docx", "python-docx" },
	{ "dotenv", "python-dotenv" },
	{ "duckduckgo_search", "duckduckgo-search" },
	{ "editor", "python-editor" },
	{ "faiss", "faiss-cpu" },
	{ "fitz", "pymupdf" },
	{ "flask_cors", "flask-cors" },
	{ "fuzzywuzzy", "fuzzywuzzy" },
	{ "gi", "pygobject" },
	{ "git", "gitpython" },
	{ "github", "pygithub" },
	{ "google.protobuf", "protobuf" },
	{ "googleapiclient", "google-api-python-client" },
	{ "graphviz", "graphviz" },
	{ "haystack", "haystack-ai" },
	{ "igraph", "python-igraph" },
	{ "imblearn", "imbalanced-learn" },
	{ "jose", "python-jose" },
	{ "jwt", "pyjwt" },
	{ "kafka", "kafka-python" },
	{ "ldap", "python-ldap" },
	{ "ldap3", "ldap3" },
	{ "lightning_utilities", "lightning-utilities" },
	{ "llama_cpp", "llama-cpp-python" },
	{ "magic", "python-magic" },
	{ "markdown", "markdown" },
	{ "memcache", "python-memcached" },
	{ "mpl_toolkits", "matplotlib" },
	{ "multipart", "python-multipart" },
	{ "nacl", "pynacl" },
	{ "ncclient", "ncclient" },
	{ "newspaper", "newspaper3k" },
	{ "odf", "odfpy" },
	{ "pkg_resources", "setuptools" },
	{ "pptx", "python-pptx" },
	{ "psycopg2", "psycopg2-binary" },
	{ "pwiz", "peewee" },
	{ "pylab", "matplotlib" },
	{ "pywintypes", "pywin32" },
	{ "pyximport", "cython" },
	{ "redis", "redis" },
	{ "rest_framework", "djangorestframework" },
	{ "ruamel", "ruamel-yaml" },
	{ "sentence_transformers", "sentence-transformers" },
	{ "serial", "pyserial" },
	{ "shapefile", "pyshp" },
	{ "skimage", "scikit-image" },
	{ "sklearn", "scikit-learn" },
	{ "slugify", "python-slugify" },
	{ "snappy", "python-snappy" },
	{ "socks", "pysocks" },
	{ "speech_recognition", "speechrecognition" },
	{ "statsmodels", "statsmodels" },
	{ "telegram", "python-telegram-bot" },
	{ "tlz", "toolz" },
	{ "umap", "umap-learn" },
	{ "usb", "pyusb" },
	{ "vlc", "python-vlc" },
	{ "websocket", "websocket-client" },
	{ "whois", "python-whois" },
	{ "wx", "wxpython" },
	{ "xdg", "pyxdg" },
	{ "yaml", "pyyaml" },
	{ "zmq", "pyzmq" },
};

/*
 * Slips with one meaning. Those that lead into the standard library cost nothing and need no index.
 */
static const struct {
	const char *slip, *meant;
} slips[] = {
	{ "arg_parse", "argparse" },
	{ "async", "asyncio" },
	{ "beautifulsoup", "bs4" },
	{ "beautifulsoup4", "bs4" },
	{ "collection", "collections" },
	{ "contextmanager", "contextlib" },
	{ "dataclass", "dataclasses" },
	{ "date", "datetime" },
	{ "datatime", "datetime" },
	{ "deque", "collections" },
	{ "enums", "enum" },
	{ "functool", "functools" },
	{ "itertool", "itertools" },
	{ "jason", "json" },
	{ "maths", "math" },
	{ "mathplotlib", "matplotlib" },
	{ "matplot", "matplotlib" },
	{ "matplotlip", "matplotlib" },
	{ "numpi", "numpy" },
	{ "opencv", "cv2" },
	{ "pillow", "PIL" },
	{ "plt", "matplotlib" },
	{ "pyplot", "matplotlib" },
	{ "pyyaml", "yaml" },
	{ "rand", "random" },
	{ "scikit-learn", "sklearn" },
	{ "scikit_learn", "sklearn" },
	{ "sklean", "sklearn" },
	{ "statistic", "statistics" },
	{ "strings", "string" },
	{ "sub_process", "subprocess" },
	{ "sqlite", "sqlite3" },
	{ "thread", "threading" },
	{ "threads", "threading" },
	{ "tk", "tkinter" },
	{ "Tkinter", "tkinter" },
	{ "urlib", "urllib" },
};

/*
 * Modules of Python 2 that Python 3 has under another name. Packages of these names are other
 * people's.
 */
static const struct {
	const char *old, *now;
} renamed[] = {
	{ "BaseHTTPServer", "http.server" },
	{ "CGIHTTPServer", "http.server" },
	{ "ConfigParser", "configparser" },
	{ "Cookie", "http.cookies" },
	{ "Dialog", "tkinter.dialog" },
	{ "DocXMLRPCServer", "xmlrpc.server" },
	{ "FileDialog", "tkinter.filedialog" },
	{ "HTMLParser", "html.parser" },
	{ "Queue", "queue" },
	{ "ScrolledText", "tkinter.scrolledtext" },
	{ "SimpleDialog", "tkinter.simpledialog" },
	{ "SimpleHTTPServer", "http.server" },
	{ "SimpleXMLRPCServer", "xmlrpc.server" },
	{ "SocketServer", "socketserver" },
	{ "StringIO", "io" },
	{ "Tix", "tkinter.tix" },
	{ "Tkconstants", "tkinter.constants" },
	{ "Tkdnd", "tkinter.dnd" },
	{ "UserDict", "collections" },
	{ "UserList", "collections" },
	{ "UserString", "collections" },
	{ "__builtin__", "builtins" },
	{ "_winreg", "winreg" },
	{ "anydbm", "dbm" },
	{ "cPickle", "pickle" },
	{ "cStringIO", "io" },
	{ "commands", "subprocess" },
	{ "cookielib", "http.cookiejar" },
	{ "copy_reg", "copyreg" },
	{ "dbhash", "dbm" },
	{ "dumbdbm", "dbm.dumb" },
	{ "dummy_thread", "_thread" },
	{ "exceptions", "builtins" },
	{ "gdbm", "dbm.gnu" },
	{ "htmlentitydefs", "html.entities" },
	{ "htmllib", "html.parser" },
	{ "httplib", "http.client" },
	{ "md5", "hashlib" },
	{ "mimetools", "email" },
	{ "mimify", "email" },
	{ "new", "types" },
	{ "popen2", "subprocess" },
	{ "rfc822", "email" },
	{ "robotparser", "urllib.robotparser" },
	{ "sets", "builtins" },
	{ "sgmllib", "html.parser" },
	{ "sha", "hashlib" },
	{ "tkColorChooser", "tkinter.colorchooser" },
	{ "tkCommonDialog", "tkinter.commondialog" },
	{ "tkFileDialog", "tkinter.filedialog" },
	{ "tkFont", "tkinter.font" },
	{ "tkMessageBox", "tkinter.messagebox" },
	{ "tkSimpleDialog", "tkinter.simpledialog" },
	{ "ttk", "tkinter.ttk" },
	{ "urllib2", "urllib.request" },
	{ "urlparse", "urllib.parse" },
	{ "whichdb", "dbm" },
	{ "xmlrpclib", "xmlrpc.client" },
};

/* Modules that the standard library had and some Python 3 no longer has. */
static const char *const removed[] = { "aifc", "asynchat", "asyncore", "audioop", "binhex", "cgi",
	"cgitb", "chunk", "crypt", "distutils", "dummy_threading", "formatter", "imghdr", "imp",
	"lib2to3", "macpath", "mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "parser",
	"pipes", "smtpd", "sndhdr", "spwd", "sunau", "symbol", "telnetlib", "tkinter", "turtle",
	"uu", "xdrlib" };

/* What many people use under its own name: what a misspelling is measured against. */
static const char *const popular[] = { "aiofiles", "aiohttp", "altair", "anthropic", "anyio",
	"astropy", "asyncpg", "bokeh", "boto3", "botocore", "catboost", "celery", "certifi", "cffi",
	"chardet", "charset-normalizer", "click", "colorama", "contourpy", "cryptography", "cupy",
	"cvxpy", "cython", "dash", "dask", "datasets", "django", "docutils", "duckdb", "einops",
	"faker", "fastapi", "filelock", "flask", "folium", "fonttools", "fsspec", "gensim",
	"geopandas", "gradio", "gunicorn", "gymnasium", "h5py", "holidays", "httpx",
	"huggingface-hub", "hypothesis", "idna", "imageio", "ipywidgets", "isort", "jax", "jieba",
	"jinja2", "joblib", "jsonschema", "jupyter", "keras", "kiwisolver", "langchain", "librosa",
	"lightgbm", "llvmlite", "loguru", "lxml", "mako", "markdown", "markupsafe", "matplotlib",
	"mistune", "mpmath", "msgpack", "mypy", "nbformat", "networkx", "nltk", "numba", "numexpr",
	"numpy", "openai", "openpyxl", "ortools", "packaging", "pandas", "paramiko", "peewee",
	"pendulum", "pip", "plotly", "polars", "prettytable", "prophet", "psutil", "psycopg",
	"pyarrow", "pydantic", "pydub", "pygame", "pygments", "pymongo", "pymysql", "pyparsing",
	"pypdf", "pyproj", "pyqt5", "pyspark", "pytest", "pytz", "pywavelets", "qrcode", "rdkit",
	"redis", "regex", "reportlab", "requests", "rich", "scipy", "scrapy", "seaborn", "selenium",
	"setuptools", "shapely", "six", "smolagents", "spacy", "sqlalchemy", "starlette",
	"statsmodels", "streamlit", "sympy", "tabulate", "tenacity", "tensorflow", "termcolor",
	"textblob", "tiktoken", "tokenizers", "toml", "torch", "torchvision", "tornado", "tqdm",
	"transformers", "typer", "tzdata", "ujson", "urllib3", "uvicorn", "virtualenv", "wandb",
	"websockets", "werkzeug", "wheel", "wordcloud", "wrapt", "xarray", "xgboost", "xlrd",
	"xlsxwriter", "yfinance", "zarr", "zstandard" };

const char *names_package_of(const char *module)
{
	for (size_t i = 0; i < ARRAY_LEN(modules); i++)
		if (text_eq(modules[i].module, module))
			return modules[i].package;
	return NULL;
}

const char *names_slip(const char *module)
{
	for (size_t i = 0; i < ARRAY_LEN(slips); i++)
		if (text_eq(slips[i].slip, module))
			return slips[i].meant;
	for (size_t i = 0; i < ARRAY_LEN(renamed); i++)
		if (text_eq(renamed[i].old, module))
			return renamed[i].now;
	return NULL;
}

bool names_was_stdlib(const char *module)
{
	for (size_t i = 0; i < ARRAY_LEN(removed); i++)
		if (text_eq(removed[i], module))
			return true;
	return false;
}

int names_correct_imports(char **imports)
{
	for (; imports && *imports; imports++) {
		char top[NAMES_TOP_MAX + 1], *fixed;
		size_t n = strcspn(*imports, ".");
		if (n > NAMES_TOP_MAX)
			continue;
		memcpy(top, *imports, n);
		top[n] = '\0';
		const char *meant = names_slip(top);
		if (!meant)
			continue;
		if (asprintf(&fixed, "%s%s", meant, *imports + n) < 0)
			return -ENOMEM;
		free(*imports);
		*imports = fixed;
	}

	return 0;
}

static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		char x = *a == '_' || *a == '.' ? '-' : *a, y = *b == '_' || *b == '.' ? '-' : *b;
		if (strncasecmp(&x, &y, 1))
			return false;
	}
	return !*a && !*b;
}

bool names_known(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(popular); i++)
		if (same_name(popular[i], name))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(modules); i++)
		if (text_eq(modules[i].module, name) || same_name(modules[i].package, name))
			return true;
	return false;
}

/* The best so far; short words are too close to each other for a guess. */
struct guess {
	const char *name, *best;
	unsigned distance;
};

static void consider(struct guess *g, const char *word)
{
	size_t len = strlen(g->name);
	if (strlen(word) < 3)
		return;
	unsigned d = nearest_distance(g->name, word);
	if (d && d < g->distance && d <= (len >= 8 ? 2U : len >= 4 ? 1U : 0U)) {
		g->distance = d;
		g->best = word;
	}
}

const char *names_suggest(const char *name, const char *const *more)
{
	struct guess g = { .name = name, .distance = 3 };
	for (size_t i = 0; i < ARRAY_LEN(popular); i++)
		consider(&g, popular[i]);
	for (size_t i = 0; i < ARRAY_LEN(modules); i++)
		consider(&g, modules[i].module);
	for (; more && *more; more++)
		if (**more != '_')
			consider(&g, *more);
	return g.best;
}
