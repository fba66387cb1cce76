"""Files without end, empty ones."""
# timeout: 30

LIMIT = 65536
made = 0
os.makedirs('many', exist_ok=True)
directory = os.open('many', os.O_RDONLY)
try:
    while made < LIMIT + 500:
        os.close(os.open(f'{made}', os.O_CREAT | os.O_WRONLY, dir_fd=directory))
        made += 1
except OSError:
    pass
if made > LIMIT:
    got(f'{made} files')
