// A small picture of a session's screen, now and then.
import { useEffect, useState } from 'preact/hooks';
import { blobOf } from '../api';

export function Thumbnail({ id }: { id: string }) {
  const [url, setUrl] = useState('');
  useEffect(() => {
    let gone = false, last = '';
    const look = async () => {
      if (document.hidden) return;
      try {
        const next = URL.createObjectURL(await blobOf(`/v1/sessions/${id}/screenshot?scale=0.125`));
        if (gone) { URL.revokeObjectURL(next); return; }
        setUrl(next);
        if (last) URL.revokeObjectURL(last);
        last = next;
      } catch { /* no picture now */ }
    };
    look();
    const timer = setInterval(look, 4000);
    return () => { gone = true; clearInterval(timer); if (last) URL.revokeObjectURL(last); };
  }, [id]);
  return url ? <a href={`#/s/${id}/screen`} aria-label="Screen"><img src={url} alt="" /></a> : null;
}
