#include "packages/names.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "base/text.h"

/* Modules whose package has another name; in order of the modules. */
static const struct {
	const char *module, *package;
} modules[] = {
	{ "Bio", "biopython" }, { "Crypto", "pycryptodome" }, { "Cryptodome", "pycryptodomex" }, { "IPython", "ipython" },
	{ "Levenshtein", "levenshtein" }, { "MySQLdb", "mysqlclient" }, { "OpenGL", "pyopengl" }, { "OpenSSL", "pyopenssl" },
	{ "PIL", "pillow" }, { "PyPDF2", "pypdf2" }, { "Xlib", "python-xlib" }, { "absl", "absl-py" }, { "apt", "python-apt" },
	{ "attr", "attrs" }, { "barcode", "python-barcode" }, { "bidi", "python-bidi" }, { "bs4", "beautifulsoup4" },
	{ "cairo", "pycairo" }, { "community", "python-louvain" }, { "cpuinfo", "py-cpuinfo" }, { "cv2", "opencv-python" },
	{ "dateutil", "python-dateutil" }, { "decouple", "python-decouple" }, { "dns", "dnspython" }, { "docx", "python-docx" },
	{ "dotenv", "python-dotenv" }, { "duckduckgo_search", "duckduckgo-search" }, { "editor", "python-editor" },
	{ "faiss", "faiss-cpu" }, { "fitz", "pymupdf" }, { "flask_cors", "flask-cors" }, { "fuzzywuzzy", "fuzzywuzzy" },
	{ "gi", "pygobject" }, { "git", "gitpython" }, { "github", "pygithub" }, { "google.protobuf", "protobuf" },
	{ "googleapiclient", "google-api-python-client" }, { "graphviz", "graphviz" }, { "haystack", "haystack-ai" },
	{ "igraph", "python-igraph" }, { "imblearn", "imbalanced-learn" }, { "jose", "python-jose" }, { "jwt", "pyjwt" },
	{ "kafka", "kafka-python" }, { "ldap", "python-ldap" }, { "ldap3", "ldap3" }, { "lightning_utilities", "lightning-utilities" },
	{ "llama_cpp", "llama-cpp-python" }, { "magic", "python-magic" }, { "markdown", "markdown" }, { "memcache", "python-memcached" },
	{ "mpl_toolkits", "matplotlib" }, { "multipart", "python-multipart" }, { "nacl", "pynacl" }, { "ncclient", "ncclient" },
	{ "newspaper", "newspaper3k" }, { "odf", "odfpy" }, { "pkg_resources", "setuptools" },
	{ "pptx", "python-pptx" }, { "psycopg2", "psycopg2-binary" }, { "pwiz", "peewee" }, { "pylab", "matplotlib" },
	{ "pywintypes", "pywin32" }, { "pyximport", "cython" }, { "redis", "redis" }, { "rest_framework", "djangorestframework" },
	{ "ruamel", "ruamel-yaml" }, { "sentence_transformers", "sentence-transformers" }, { "serial", "pyserial" },
	{ "shapefile", "pyshp" }, { "skimage", "scikit-image" }, { "sklearn", "scikit-learn" }, { "slugify", "python-slugify" },
	{ "snappy", "python-snappy" }, { "socks", "pysocks" }, { "speech_recognition", "speechrecognition" }, { "statsmodels", "statsmodels" },
	{ "telegram", "python-telegram-bot" }, { "tlz", "toolz" }, { "umap", "umap-learn" }, { "usb", "pyusb" },
	{ "vlc", "python-vlc" }, { "websocket", "websocket-client" }, { "whois", "python-whois" }, { "wx", "wxpython" },
	{ "xdg", "pyxdg" }, { "yaml", "pyyaml" }, { "zmq", "pyzmq" },
};

/* Slips with one meaning. Those that lead into the standard library cost nothing and need no index. */
static const struct {
	const char *slip, *meant;
} slips[] = {
	{ "arg_parse", "argparse" }, { "async", "asyncio" }, { "beautifulsoup", "bs4" }, { "beautifulsoup4", "bs4" },
	{ "collection", "collections" }, { "contextmanager", "contextlib" }, { "dataclass", "dataclasses" }, { "date", "datetime" },
	{ "datatime", "datetime" }, { "deque", "collections" }, { "enums", "enum" }, { "functool", "functools" },
	{ "itertool", "itertools" }, { "jason", "json" }, { "maths", "math" }, { "mathplotlib", "matplotlib" },
	{ "matplot", "matplotlib" }, { "matplotlip", "matplotlib" }, { "numpi", "numpy" }, { "opencv", "cv2" },
	{ "pillow", "PIL" }, { "plt", "matplotlib" }, { "pyplot", "matplotlib" },
	{ "pyyaml", "yaml" }, { "rand", "random" }, { "scikit-learn", "sklearn" },
	{ "scikit_learn", "sklearn" }, { "sklean", "sklearn" }, { "statistic", "statistics" }, { "strings", "string" },
	{ "sub_process", "subprocess" }, { "sqlite", "sqlite3" }, { "thread", "threading" }, { "threads", "threading" },
	{ "tk", "tkinter" }, { "Tkinter", "tkinter" }, { "urlib", "urllib" },
};

/* What many people use under its own name: what a misspelling is measured against. */
static const char *const popular[] = { "aiofiles", "aiohttp", "altair", "anthropic", "anyio", "astropy", "asyncpg", "bokeh", "boto3",
	"botocore", "catboost", "celery", "certifi", "cffi", "chardet", "charset-normalizer", "click", "colorama", "contourpy",
	"cryptography", "cupy", "cvxpy", "cython", "dash", "dask", "datasets", "django", "docutils", "duckdb", "einops", "faker",
	"fastapi", "filelock", "flask", "folium", "fonttools", "fsspec", "gensim", "geopandas", "gradio", "gunicorn", "gymnasium",
	"h5py", "holidays", "httpx", "huggingface-hub", "hypothesis", "idna", "imageio", "ipywidgets", "isort", "jax", "jieba",
	"jinja2", "joblib", "jsonschema", "jupyter", "keras", "kiwisolver", "langchain", "librosa", "lightgbm", "llvmlite", "loguru",
	"lxml", "mako", "markdown", "markupsafe", "matplotlib", "mistune", "mpmath", "msgpack", "mypy", "nbformat", "networkx",
	"nltk", "numba", "numexpr", "numpy", "openai", "openpyxl", "ortools", "packaging", "pandas", "paramiko", "peewee", "pendulum",
	"pip", "plotly", "polars", "prettytable", "prophet", "psutil", "psycopg", "pyarrow", "pydantic", "pydub", "pygame",
	"pygments", "pymongo", "pymysql", "pyparsing", "pypdf", "pyproj", "pyqt5", "pyspark", "pytest", "pytz", "pywavelets",
	"qrcode", "rdkit", "redis", "regex", "reportlab", "requests", "rich", "scipy", "scrapy", "seaborn", "selenium", "setuptools",
	"shapely", "six", "smolagents", "spacy", "sqlalchemy", "starlette", "statsmodels", "streamlit", "sympy", "tabulate",
	"tenacity", "tensorflow", "termcolor", "textblob", "tiktoken", "tokenizers", "toml", "torch", "torchvision", "tornado",
	"tqdm", "transformers", "typer", "tzdata", "ujson", "urllib3", "uvicorn", "virtualenv", "wandb", "websockets", "werkzeug",
	"wheel", "wordcloud", "wrapt", "xarray", "xgboost", "xlrd", "xlsxwriter", "yfinance", "zarr", "zstandard" };

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
	return NULL;
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
