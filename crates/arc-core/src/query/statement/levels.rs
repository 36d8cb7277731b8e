//! How deep what the parser makes of some words will be, before it does.

use datafusion::sql::sqlparser::{
    keywords::Keyword,
    tokenizer::{Token, TokenWithSpan},
};

/// Returns an upper bound of the depth of the tree that the parser will make of `tokens`.
pub(super) fn depth(tokens: &[TokenWithSpan]) -> usize {
    let mut open: Vec<Level> = Vec::new();
    let mut level = Level::default();
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => open.push(std::mem::take(&mut level)),
            Token::RParen | Token::RBracket | Token::RBrace => {
                let inner = level.depth() + 1;
                level = open.pop().unwrap_or_default();
                level.inner = level.inner.max(inner);
            }
            Token::Comma | Token::SemiColon => level.end_item(),
            token if deepens(token) => level.chain += 1,
            _ => {}
        }
    }
    open.into_iter().map(|level| level.depth()).sum::<usize>() + level.depth()
}

/// Returns how many pairs of brackets follow each other at most, as behind a type or a list.
pub(super) fn subscripts(tokens: &[TokenWithSpan]) -> usize {
    // Of each bracket that is open, which one of its row it is.
    let mut open = Vec::new();
    let (mut most, mut behind) = (0, 0_usize);
    for token in tokens.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_))) {
        match token {
            Token::LBracket => {
                open.push(behind + 1);
                behind = 0;
            }
            Token::RBracket => {
                behind = open.pop().unwrap_or(1);
                most = most.max(behind);
            }
            _ => behind = 0,
        }
    }
    most
}

/// Types that have types in them. Some are functions and parts of queries, too, which nobody nests so deep.
const OUTER_TYPES: [&str; 11] =
    ["array", "lowcardinality", "map", "nested", "nullable", "row", "setof", "struct", "table", "tuple", "union"];

/// Returns how many of [`OUTER_TYPES`] are in each other at most.
pub(super) fn type_levels(tokens: &[TokenWithSpan]) -> usize {
    /// What is open: `(`, which may be that of a type, or the `<` of one.
    enum OpenType {
        Parenthesis { of_type: bool },
        Angle,
    }
    let mut open: Vec<OpenType> = Vec::new();
    let (mut most, mut levels, mut sets) = (0, 0_usize, 0);
    let mut is_type = false;
    for token in tokens.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_))) {
        let was_type = std::mem::take(&mut is_type);
        match token {
            Token::Word(word) if word.quote_style.is_none() => {
                is_type = OUTER_TYPES.iter().any(|name| word.value.eq_ignore_ascii_case(name));
                // They need no parentheses.
                sets += usize::from(word.value.eq_ignore_ascii_case("setof"));
            }
            Token::LParen => {
                levels += usize::from(was_type);
                open.push(OpenType::Parenthesis { of_type: was_type });
            }
            Token::Lt if was_type => {
                levels += 1;
                open.push(OpenType::Angle);
            }
            Token::Gt | Token::ShiftRight => {
                for _ in 0..if *token == Token::Gt { 1 } else { 2 } {
                    let closed = open.pop_if(|open| matches!(open, OpenType::Angle));
                    levels -= usize::from(closed.is_some());
                }
            }
            Token::RParen => {
                while let Some(OpenType::Angle) = open.last() {
                    open.pop();
                    levels -= 1;
                }
                levels -= usize::from(matches!(open.pop(), Some(OpenType::Parenthesis { of_type: true })));
            }
            _ => {}
        }
        most = most.max(levels + sets);
    }
    most
}

/// The items between one pair of parentheses, so far.
#[derive(Debug, Default)]
struct Level {
    /// Operators and keywords since the last comma.
    chain: usize,
    /// Depth of the deepest parentheses in the current item.
    inner: usize,
    /// Depth of the deepest item before the current one.
    deepest: usize,
}

impl Level {
    fn end_item(&mut self) {
        *self = Self { deepest: self.depth(), ..Self::default() };
    }

    fn depth(&self) -> usize {
        self.deepest.max(self.chain + self.inner)
    }
}

fn deepens(token: &Token) -> bool {
    match token {
        Token::Word(word) => !matches!(
            word.keyword,
            Keyword::NoKeyword | Keyword::NULL | Keyword::TRUE | Keyword::FALSE | Keyword::WHEN | Keyword::THEN
        ),
        Token::Whitespace(_) | Token::Number(..) | Token::Period | Token::EOF => false,
        Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) | Token::NationalStringLiteral(_) => false,
        _ => true,
    }
}
