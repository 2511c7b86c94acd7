"""Pieces of words, cut as crates/inspect/src/injection/network/pieces.rs does."""
import re
import numpy as np
# Letters and digits; beyond ASCII what is neither a sign nor written without blanks between words.
LETTER='0-9a-zA-Z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff\u2c00-\u2dff'
WORD=re.compile(f'[{LETTER}]+|[^\\s{LETTER}]')
MAX_WORD=48  # bytes; longer ones are one unknown
PAD,UNKNOWN=0,1
class Pieces:
    def __init__(s,vocab):  # list of pieces, first two reserved
        s.ids={p:i for i,p in enumerate(vocab) if i>1}; s.cache={}
    def word(s,w):
        r=s.cache.get(w)
        if r is None: r=s.cache[w]=s.split(w)
        return r
    def split(s,w):
        if len(w.encode())>MAX_WORD: return [UNKNOWN]
        out=[];at=0
        while at<len(w):
            end=len(w)
            while end>at:
                p=s.ids.get(('##' if at else '')+w[at:end])
                if p: break
                end-=1
            if end>at: out.append(p); at=end
            else: out.append(UNKNOWN); at+=1
        return out
    def __call__(s,text):
        out=[]
        for w in WORD.findall(text): out+=s.word(w)
        return out
